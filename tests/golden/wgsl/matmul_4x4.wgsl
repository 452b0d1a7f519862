// matmul
//   input a: f32[37, 9]
//   input b: f32[9, 41]
//   output c: f32[37, 41]
// matmul: 2 x 2 x 1 workgroups of 8 x 8 x 1 threads

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> a_tile: array<array<vec4<f32>, 9>, 8>;
var<workgroup> b_tile: array<array<vec4<f32>, 9>, 8>;

// matmul: tile 32x32x8, 4x4 a thread
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
  var acc_1_0: vec4<f32>;
  var acc_2_0: vec4<f32>;
  var acc_3_0: vec4<f32>;
  var av: vec4<f32>;
  var bv: vec4<f32>;
  acc_0_0 = vec4<f32>(0.0);
  acc_1_0 = vec4<f32>(0.0);
  acc_2_0 = vec4<f32>(0.0);
  acc_3_0 = vec4<f32>(0.0);
  let tx_div_8: i32 = tx / 8;
  let row: i32 = tx_div_8 + ty;
  let tx_mod_8: i32 = tx % 8;
  let a_at: i32 = tx_mod_8*36 + tx_div_8 + mb*288 + ty;
  let at: i32 = tx_mod_8*4 + mb*32;
  let b_at: i32 = tx_mod_8*4 + tx_div_8*41 + nb*32 + ty*41;
  let at_3: i32 = tx_mod_8*4 + nb*32;
  for (var kb: i32 = 0; kb < 2; kb++) {
    workgroupBarrier();
    var picked: vec4<f32> = vec4<f32>(0.0);
    let a_at_2: i32 = a_at + kb*8;
    let at_2: i32 = row + kb*8;
    if (at_2 < 9) {
      if (at < 40) {
        picked.x = a[a_at_2];
      }
      if (at < 36) {
        picked.y = a[a_at_2 + 9];
        picked.z = a[a_at_2 + 18];
        picked.w = a[a_at_2 + 27];
      }
    }
    a_tile[row][tx_mod_8] = picked;
    var picked_2: vec4<f32> = vec4<f32>(0.0);
    let b_at_2: i32 = b_at + kb*328;
    if (at_2 < 9) {
      if (at_3 < 44) {
        picked_2.x = b[b_at_2];
      }
      if (at_3 < 40) {
        picked_2.y = b[b_at_2 + 1];
        picked_2.z = b[b_at_2 + 2];
        picked_2.w = b[b_at_2 + 3];
      }
    }
    b_tile[row][tx_mod_8] = picked_2;
    workgroupBarrier();
    for (var kk: i32 = 0; kk < 8; kk++) {
      av = a_tile[kk][ty];
      bv = b_tile[kk][tx];
      acc_0_0 = fma(vec4<f32>(av.x), bv, acc_0_0);
      acc_1_0 = fma(vec4<f32>(av.y), bv, acc_1_0);
      acc_2_0 = fma(vec4<f32>(av.z), bv, acc_2_0);
      acc_3_0 = fma(vec4<f32>(av.w), bv, acc_3_0);
    }
  }
  let at_4: i32 = mb*32 + ty*4;
  let at_5: i32 = nb*32 + tx*4;
  let c_at: i32 = mb*1312 + nb*32 + tx*4 + ty*164;
  if (at_4 < 40) {
    if (at_5 < 44) {
      c[c_at] = acc_0_0.x;
    }
    if (at_5 < 40) {
      c[c_at + 1] = acc_0_0.y;
      c[c_at + 2] = acc_0_0.z;
      c[c_at + 3] = acc_0_0.w;
    }
  }
  if (at_4 < 36) {
    if (at_5 < 44) {
      c[c_at + 41] = acc_1_0.x;
    }
    if (at_5 < 40) {
      c[c_at + 42] = acc_1_0.y;
      c[c_at + 43] = acc_1_0.z;
      c[c_at + 44] = acc_1_0.w;
    }
    if (at_5 < 44) {
      c[c_at + 82] = acc_2_0.x;
    }
    if (at_5 < 40) {
      c[c_at + 83] = acc_2_0.y;
      c[c_at + 84] = acc_2_0.z;
      c[c_at + 85] = acc_2_0.w;
    }
    if (at_5 < 44) {
      c[c_at + 123] = acc_3_0.x;
    }
    if (at_5 < 40) {
      c[c_at + 124] = acc_3_0.y;
      c[c_at + 125] = acc_3_0.z;
      c[c_at + 126] = acc_3_0.w;
    }
  }
}
