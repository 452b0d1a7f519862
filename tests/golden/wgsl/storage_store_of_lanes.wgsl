// p
//   input x: f32[128]
//   input b: f32[8]
//   output y: f32[128]
// k: 1 x 1 x 1 workgroups of 16 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// k
@compute @workgroup_size(16, 1, 1)
fn k(@builtin(local_invocation_id) local_invocation_id: vec3<u32>) {
  let tx: i32 = i32(local_invocation_id.x);
  if (tx*8 < 96) {
    let four = vec4<f32>(x[tx*8], x[tx*8 + 1], x[tx*8 + 2], x[tx*8 + 3]);
    y[tx*8] = four.x;
    y[tx*8 + 1] = four.y;
    y[tx*8 + 2] = four.z;
    y[tx*8 + 3] = four.w;
    y[tx*8 + 4] = x[tx*8 + 4];
  }
  if (tx*8 < 88) {
    y[tx*8 + 5] = x[tx*8 + 5];
    y[tx*8 + 6] = x[tx*8 + 6];
    y[tx*8 + 7] = x[tx*8 + 7];
  }
}
