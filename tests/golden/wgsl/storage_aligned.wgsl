// p
//   input x: f32[128]
//   input b: f32[8]
//   output y: f32[128]
// k: 1 x 1 x 1 workgroups of 16 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// k
@compute @workgroup_size(16, 1, 1)
fn k(@builtin(local_invocation_id) local_invocation_id: vec3<u32>) {
  let tx: i32 = i32(local_invocation_id.x);
  y[tx*2] = x[tx*2];
  y[tx*2 + 1] = x[tx*2 + 1];
}
