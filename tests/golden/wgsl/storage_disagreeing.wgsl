// p
//   input x: f32[128]
//   temp h: f32[128]
//   output y: f32[128]
// first: 1 x 1 x 1 workgroups of 16 x 1 x 1 threads
// second: 1 x 1 x 1 workgroups of 16 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(0) var<storage, read> x_vec4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> h_in: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// first
@compute @workgroup_size(16, 1, 1)
fn first(@builtin(local_invocation_id) local_invocation_id: vec3<u32>) {
  let tx: i32 = i32(local_invocation_id.x);
  h[tx*2] = x_vec4[tx*2];
  h[tx*2 + 1] = x_vec4[tx*2 + 1];
}

// second
@compute @workgroup_size(16, 1, 1)
fn second(@builtin(local_invocation_id) local_invocation_id: vec3<u32>) {
  let tx: i32 = i32(local_invocation_id.x);
  let tx_mod_128: i32 = (tx*8 + 1) % 128;
  let tx_mod_128_2: i32 = (tx*8 + 2) % 128;
  let tx_mod_128_3: i32 = (tx*8 + 3) % 128;
  let tx_mod_128_4: i32 = (tx*8 + 4) % 128;
  y[tx*2] = vec4<f32>(x[tx_mod_128], x[tx_mod_128_2], x[tx_mod_128_3], x[tx_mod_128_4]) + h_in[tx*2];
  let tx_mod_128_5: i32 = (tx*8 + 5) % 128;
  let tx_mod_128_6: i32 = (tx*8 + 6) % 128;
  let tx_mod_128_7: i32 = (tx*8 + 7) % 128;
  let tx_mod_128_8: i32 = (tx*8 + 8) % 128;
  y[tx*2 + 1] = vec4<f32>(x[tx_mod_128_5], x[tx_mod_128_6], x[tx_mod_128_7], x[tx_mod_128_8]) + h_in[tx*2 + 1];
}
