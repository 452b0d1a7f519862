// conv_transpose1d
//   input x: f32[1, 8, 400]
//   input w: f32[8, 1, 4]
//   output y: f32[1, 8, 800]
// y_taps: 4 x 8 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// y_taps: taps: scheduled
@compute @workgroup_size(64, 1, 1)
fn y_taps(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let tile: i32 = i32(workgroup_id.x);
  let g: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  var acc: vec4<f32>;
  var w_row: vec4<f32>;
  var x_row: vec4<f32>;
  acc = vec4<f32>(0.0);
  var picked: vec4<f32> = vec4<f32>(0.0);
  let x_at: i32 = g*400 + tile*128 + tx*2;
  let at: i32 = tile*128 + tx*2;
  let at_2: i32 = tile*64 + tx;
  if (at_2 < 200) {
    if (at >= 1 && at < 402) {
      picked.x = x[x_at - 1];
    }
    if (at < 400) {
      picked.y = x[x_at];
      picked.z = x[x_at + 1];
    }
    if (at < 398) {
      picked.w = x[x_at + 2];
    }
  }
  x_row = picked;
  var picked_2: vec4<f32> = vec4<f32>(0.0);
  if (at_2 < 200) {
    picked_2 = w[g];
  }
  w_row = picked_2;
  acc = fma(vec4<f32>(x_row.y, x_row.z, x_row.z, x_row.w), vec4<f32>(w_row.y, w_row.x, w_row.y, w_row.x), acc);
  acc = fma(vec4<f32>(x_row.x, x_row.y, x_row.y, x_row.z), vec4<f32>(w_row.w, w_row.z, w_row.w, w_row.z), acc);
  let y_at: i32 = g*200 + tile*64 + tx;
  if (at_2 < 200) {
    y[y_at] = acc;
  }
}
