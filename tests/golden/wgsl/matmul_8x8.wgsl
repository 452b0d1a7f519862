// matmul
//   input a: f32[128, 64]
//   input b: f32[64, 64]
//   output c: f32[128, 64]
// matmul: 1 x 2 x 1 workgroups of 8 x 8 x 1 threads

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> a_tile: array<vec4<f32>, 272>;
var<workgroup> b_tile: array<vec4<f32>, 272>;

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
  let tx_mod_16: i32 = at % 16;
  let row: i32 = at / 16;
  let a_tile_at: i32 = tx_mod_16 + row*17;
  let a_at: i32 = tx_mod_16*256 + row + mb*4096;
  let b_at: i32 = tx_mod_16*4 + row*64 + nb*64;
  let a_tile_at_2: i32 = ty*2;
  for (var kb: i32 = 0; kb < 4; kb++) {
    workgroupBarrier();
    let a_at_2: i32 = a_at + kb*16;
    a_tile[a_tile_at] = vec4<f32>(a[a_at_2], a[a_at_2 + 64], a[a_at_2 + 128], a[a_at_2 + 192]);
    a_tile[a_tile_at + 68] = vec4<f32>(a[a_at_2 + 4], a[a_at_2 + 68], a[a_at_2 + 132], a[a_at_2 + 196]);
    a_tile[a_tile_at + 136] = vec4<f32>(a[a_at_2 + 8], a[a_at_2 + 72], a[a_at_2 + 136], a[a_at_2 + 200]);
    a_tile[a_tile_at + 204] = vec4<f32>(a[a_at_2 + 12], a[a_at_2 + 76], a[a_at_2 + 140], a[a_at_2 + 204]);
    let b_at_2: i32 = b_at + kb*1024;
    b_tile[a_tile_at] = vec4<f32>(b[b_at_2], b[b_at_2 + 1], b[b_at_2 + 2], b[b_at_2 + 3]);
    b_tile[a_tile_at + 68] = vec4<f32>(b[b_at_2 + 256], b[b_at_2 + 257], b[b_at_2 + 258], b[b_at_2 + 259]);
    b_tile[a_tile_at + 136] = vec4<f32>(b[b_at_2 + 512], b[b_at_2 + 513], b[b_at_2 + 514], b[b_at_2 + 515]);
    b_tile[a_tile_at + 204] = vec4<f32>(b[b_at_2 + 768], b[b_at_2 + 769], b[b_at_2 + 770], b[b_at_2 + 771]);
    workgroupBarrier();
    for (var kk: i32 = 0; kk < 16; kk++) {
      let a_tile_at_3: i32 = a_tile_at_2 + kk*17;
      av_0 = a_tile[a_tile_at_3];
      av_1 = a_tile[a_tile_at_3 + 1];
      let b_tile_at: i32 = tx + kk*17;
      bv_0 = b_tile[b_tile_at];
      bv_1 = b_tile[b_tile_at + 8];
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
  let c_at: i32 = mb*4096 + nb*64 + tx*4 + ty*512;
  c[c_at] = acc_0_0.x;
  c[c_at + 1] = acc_0_0.y;
  c[c_at + 2] = acc_0_0.z;
  c[c_at + 3] = acc_0_0.w;
  c[c_at + 32] = acc_0_1.x;
  c[c_at + 33] = acc_0_1.y;
  c[c_at + 34] = acc_0_1.z;
  c[c_at + 35] = acc_0_1.w;
  c[c_at + 64] = acc_1_0.x;
  c[c_at + 65] = acc_1_0.y;
  c[c_at + 66] = acc_1_0.z;
  c[c_at + 67] = acc_1_0.w;
  c[c_at + 96] = acc_1_1.x;
  c[c_at + 97] = acc_1_1.y;
  c[c_at + 98] = acc_1_1.z;
  c[c_at + 99] = acc_1_1.w;
  c[c_at + 128] = acc_2_0.x;
  c[c_at + 129] = acc_2_0.y;
  c[c_at + 130] = acc_2_0.z;
  c[c_at + 131] = acc_2_0.w;
  c[c_at + 160] = acc_2_1.x;
  c[c_at + 161] = acc_2_1.y;
  c[c_at + 162] = acc_2_1.z;
  c[c_at + 163] = acc_2_1.w;
  c[c_at + 192] = acc_3_0.x;
  c[c_at + 193] = acc_3_0.y;
  c[c_at + 194] = acc_3_0.z;
  c[c_at + 195] = acc_3_0.w;
  c[c_at + 224] = acc_3_1.x;
  c[c_at + 225] = acc_3_1.y;
  c[c_at + 226] = acc_3_1.z;
  c[c_at + 227] = acc_3_1.w;
  c[c_at + 256] = acc_4_0.x;
  c[c_at + 257] = acc_4_0.y;
  c[c_at + 258] = acc_4_0.z;
  c[c_at + 259] = acc_4_0.w;
  c[c_at + 288] = acc_4_1.x;
  c[c_at + 289] = acc_4_1.y;
  c[c_at + 290] = acc_4_1.z;
  c[c_at + 291] = acc_4_1.w;
  c[c_at + 320] = acc_5_0.x;
  c[c_at + 321] = acc_5_0.y;
  c[c_at + 322] = acc_5_0.z;
  c[c_at + 323] = acc_5_0.w;
  c[c_at + 352] = acc_5_1.x;
  c[c_at + 353] = acc_5_1.y;
  c[c_at + 354] = acc_5_1.z;
  c[c_at + 355] = acc_5_1.w;
  c[c_at + 384] = acc_6_0.x;
  c[c_at + 385] = acc_6_0.y;
  c[c_at + 386] = acc_6_0.z;
  c[c_at + 387] = acc_6_0.w;
  c[c_at + 416] = acc_6_1.x;
  c[c_at + 417] = acc_6_1.y;
  c[c_at + 418] = acc_6_1.z;
  c[c_at + 419] = acc_6_1.w;
  c[c_at + 448] = acc_7_0.x;
  c[c_at + 449] = acc_7_0.y;
  c[c_at + 450] = acc_7_0.z;
  c[c_at + 451] = acc_7_0.w;
  c[c_at + 480] = acc_7_1.x;
  c[c_at + 481] = acc_7_1.y;
  c[c_at + 482] = acc_7_1.z;
  c[c_at + 483] = acc_7_1.w;
}
