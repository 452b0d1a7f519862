// copy
//   input x: f32[N]
//   output y: f32[N]
// copy: min(ceil(N / 64), 65535) x ceil(ceil(N / 64) / 65535) x 1 workgroups of 64 x 1 x 1 threads

struct Sizes {
  N: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// copy: one a thread
@compute @workgroup_size(64, 1, 1)
fn copy(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(num_workgroups) num_workgroups: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let N: i32 = sizes.N;
  let wg_x: i32 = i32(workgroup_id.x);
  let wg_y: i32 = i32(workgroup_id.y);
  let wg_row: i32 = i32(num_workgroups.x);
  let tx: i32 = i32(local_invocation_id.x);
  let wg_number: i32 = wg_row*wg_y + wg_x;
  let N_div_64: i32 = (N + 63) / 64;
  if (wg_number < N_div_64) {
    let at: i32 = tx + wg_number*64;
    if (at < N) {
      y[at] = x[at] + 1.0;
    }
  }
}
