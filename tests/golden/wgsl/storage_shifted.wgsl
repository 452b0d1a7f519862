// p
//   input x: f32[128]
//   input b: f32[8]
//   output y: f32[128]
// k: 1 x 1 x 1 workgroups of 16 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// k
@compute @workgroup_size(16, 1, 1)
fn k(@builtin(local_invocation_id) local_invocation_id: vec3<u32>) {
  let tx: i32 = i32(local_invocation_id.x);
  let tx_mod_128: i32 = (tx*8 + 1) % 128;
  let tx_mod_128_2: i32 = (tx*8 + 2) % 128;
  let tx_mod_128_3: i32 = (tx*8 + 3) % 128;
  let tx_mod_128_4: i32 = (tx*8 + 4) % 128;
  y[tx*2] = vec4<f32>(x[tx_mod_128], x[tx_mod_128_2], x[tx_mod_128_3], x[tx_mod_128_4]);
  let tx_mod_128_5: i32 = (tx*8 + 5) % 128;
  let tx_mod_128_6: i32 = (tx*8 + 6) % 128;
  let tx_mod_128_7: i32 = (tx*8 + 7) % 128;
  let tx_mod_128_8: i32 = (tx*8 + 8) % 128;
  y[tx*2 + 1] = vec4<f32>(x[tx_mod_128_5], x[tx_mod_128_6], x[tx_mod_128_7], x[tx_mod_128_8]);
}
