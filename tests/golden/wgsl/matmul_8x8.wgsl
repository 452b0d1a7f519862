// matmul
//   input a: f32[128, 64]
//   input b: f32[64, 64]
//   output c: f32[128, 64]
// matmul: 1 x 2 x 1 workgroups of 8 x 8 x 1 threads

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>>;

var<workgroup> a_tile: array<array<vec4<f32>, 17>, 16>;
var<workgroup> b_tile: array<array<vec4<f32>, 17>, 16>;

// matmul: tile 64x64x16, 8x8 a thread
@compute @workgroup_size(8, 8, 1)
fn matmul(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let nb: i32 = i32(workgroup_id.x);
  let mb: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  let ty: i32 = i32(local_invocation_id.y);
  var acc_0_0: vec4<f32>;
  var acc_0_1: vec4<f32>;
  var acc_1_0: vec4<f32>;
  var acc_1_1: vec4<f32>;
  var acc_2_0: vec4<f32>;
  var acc_2_1: vec4<f32>;
  var acc_3_0: vec4<f32>;
  var acc_3_1: vec4<f32>;
  var acc_4_0: vec4<f32>;
  var acc_4_1: vec4<f32>;
  var acc_5_0: vec4<f32>;
  var acc_5_1: vec4<f32>;
  var acc_6_0: vec4<f32>;
  var acc_6_1: vec4<f32>;
  var acc_7_0: vec4<f32>;
  var acc_7_1: vec4<f32>;
  var av_0: vec4<f32>;
  var av_1: vec4<f32>;
  var bv_0: vec4<f32>;
  var bv_1: vec4<f32>;
  acc_0_0 = vec4<f32>(0.0);
  acc_0_1 = vec4<f32>(0.0);
  acc_1_0 = vec4<f32>(0.0);
  acc_1_1 = vec4<f32>(0.0);
  acc_2_0 = vec4<f32>(0.0);
  acc_2_1 = vec4<f32>(0.0);
  acc_3_0 = vec4<f32>(0.0);
  acc_3_1 = vec4<f32>(0.0);
  acc_4_0 = vec4<f32>(0.0);
  acc_4_1 = vec4<f32>(0.0);
  acc_5_0 = vec4<f32>(0.0);
  acc_5_1 = vec4<f32>(0.0);
  acc_6_0 = vec4<f32>(0.0);
  acc_6_1 = vec4<f32>(0.0);
  acc_7_0 = vec4<f32>(0.0);
  acc_7_1 = vec4<f32>(0.0);
  let at: i32 = tx + ty*8;
  let row: i32 = at / 16;
  let tx_mod_16: i32 = at % 16;
  let a_at: i32 = tx_mod_16*256 + row + mb*4096;
  let b_at: i32 = tx_mod_16 + row*16 + nb*16;
  let a_tile_at: i32 = ty*2;
  for (var kb: i32 = 0; kb < 4; kb++) {
    workgroupBarrier();
    let a_at_2: i32 = a_at + kb*16;
    a_tile[row][tx_mod_16] = vec4<f32>(a[a_at_2], a[a_at_2 + 64], a[a_at_2 + 128], a[a_at_2 + 192]);
    a_tile[row + 4][tx_mod_16] = vec4<f32>(a[a_at_2 + 4], a[a_at_2 + 68], a[a_at_2 + 132], a[a_at_2 + 196]);
    a_tile[row + 8][tx_mod_16] = vec4<f32>(a[a_at_2 + 8], a[a_at_2 + 72], a[a_at_2 + 136], a[a_at_2 + 200]);
    a_tile[row + 12][tx_mod_16] = vec4<f32>(a[a_at_2 + 12], a[a_at_2 + 76], a[a_at_2 + 140], a[a_at_2 + 204]);
    let b_at_2: i32 = b_at + kb*256;
    b_tile[row][tx_mod_16] = b[b_at_2];
    b_tile[row + 4][tx_mod_16] = b[b_at_2 + 64];
    b_tile[row + 8][tx_mod_16] = b[b_at_2 + 128];
    b_tile[row + 12][tx_mod_16] = b[b_at_2 + 192];
    workgroupBarrier();
    for (var kk: i32 = 0; kk < 16; kk++) {
      av_0 = a_tile[kk][a_tile_at];
      av_1 = a_tile[kk][a_tile_at + 1];
      bv_0 = b_tile[kk][tx];
      bv_1 = b_tile[kk][tx + 8];
      acc_0_0 = fma(vec4<f32>(av_0.x), bv_0, acc_0_0);
      acc_0_1 = fma(vec4<f32>(av_0.x), bv_1, acc_0_1);
      acc_1_0 = fma(vec4<f32>(av_0.y), bv_0, acc_1_0);
      acc_1_1 = fma(vec4<f32>(av_0.y), bv_1, acc_1_1);
      acc_2_0 = fma(vec4<f32>(av_0.z), bv_0, acc_2_0);
      acc_2_1 = fma(vec4<f32>(av_0.z), bv_1, acc_2_1);
      acc_3_0 = fma(vec4<f32>(av_0.w), bv_0, acc_3_0);
      acc_3_1 = fma(vec4<f32>(av_0.w), bv_1, acc_3_1);
      acc_4_0 = fma(vec4<f32>(av_1.x), bv_0, acc_4_0);
      acc_4_1 = fma(vec4<f32>(av_1.x), bv_1, acc_4_1);
      acc_5_0 = fma(vec4<f32>(av_1.y), bv_0, acc_5_0);
      acc_5_1 = fma(vec4<f32>(av_1.y), bv_1, acc_5_1);
      acc_6_0 = fma(vec4<f32>(av_1.z), bv_0, acc_6_0);
      acc_6_1 = fma(vec4<f32>(av_1.z), bv_1, acc_6_1);
      acc_7_0 = fma(vec4<f32>(av_1.w), bv_0, acc_7_0);
      acc_7_1 = fma(vec4<f32>(av_1.w), bv_1, acc_7_1);
    }
  }
  let c_at: i32 = mb*1024 + nb*16 + tx + ty*128;
  c[c_at] = acc_0_0;
  c[c_at + 8] = acc_0_1;
  c[c_at + 16] = acc_1_0;
  c[c_at + 24] = acc_1_1;
  c[c_at + 32] = acc_2_0;
  c[c_at + 40] = acc_2_1;
  c[c_at + 48] = acc_3_0;
  c[c_at + 56] = acc_3_1;
  c[c_at + 64] = acc_4_0;
  c[c_at + 72] = acc_4_1;
  c[c_at + 80] = acc_5_0;
  c[c_at + 88] = acc_5_1;
  c[c_at + 96] = acc_6_0;
  c[c_at + 104] = acc_6_1;
  c[c_at + 112] = acc_7_0;
  c[c_at + 120] = acc_7_1;
}
