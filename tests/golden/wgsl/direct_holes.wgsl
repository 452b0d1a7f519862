// conv_transpose1d
//   input x: f32[1, 2, 300]
//   input w: f32[2, 3, 2]
//   output y: f32[1, 3, 1497]
// y_taps: 24 x 3 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// y_taps: taps: scheduled
@compute @workgroup_size(64, 1, 1)
fn y_taps(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let tile: i32 = i32(workgroup_id.x);
  let m: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  var acc: f32;
  var w_row_0_0: f32;
  var w_row_1_0: f32;
  var x_row_0_0: f32;
  var x_row_1_0: f32;
  acc = 0.0;
  var picked: f32 = 0.0;
  let at: i32 = tile*64 + tx;
  let tile_div_5: i32 = at / 5;
  let at_2: i32 = tile*4 + tx;
  let tile_mod_5: i32 = at_2 % 5;
  if (at < 1497 && tile_mod_5 < 2) {
    picked = x[tile_div_5];
  }
  x_row_0_0 = picked;
  var picked_2: f32 = 0.0;
  if (at < 1497 && tile_mod_5 < 2) {
    picked_2 = x[tile_div_5 + 300];
  }
  x_row_1_0 = picked_2;
  var picked_3: f32 = 0.0;
  let w_at: i32 = tile_mod_5 + m*2;
  if (tile_mod_5 < 2) {
    picked_3 = w[w_at];
  }
  w_row_0_0 = picked_3;
  var picked_4: f32 = 0.0;
  if (tile_mod_5 < 2) {
    picked_4 = w[w_at + 6];
  }
  w_row_1_0 = picked_4;
  acc = fma(x_row_0_0, w_row_0_0, acc);
  acc = fma(x_row_1_0, w_row_1_0, acc);
  let y_at: i32 = m*1497 + tile*64 + tx;
  if (at < 1497) {
    y[y_at] = acc;
  }
}
