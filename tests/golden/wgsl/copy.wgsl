// copy
//   input x: f32[1000]
//   output y: f32[1000]
// copy: 16 x 1 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

// copy: one a thread
@compute @workgroup_size(64, 1, 1)
fn copy(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let b: i32 = i32(workgroup_id.x);
  let tx: i32 = i32(local_invocation_id.x);
  let at: i32 = b*64 + tx;
  if (at < 1000) {
    y[at] = x[at] + 1.0;
  }
}
