// conv_transpose1d
//   input x: f32[1, 20, 64]
//   input w: f32[20, 1, 1024]
//   output y: f32[1, 1, 17152]
// y_taps: 1 x 5 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// y_taps: taps: scheduled
@compute @workgroup_size(64, 1, 1)
fn y_taps(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let tile: i32 = i32(workgroup_id.x);
  let o_step_block: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  var acc_0_0: vec4<f32>;
  var acc_1_0: vec4<f32>;
  var acc_2_0: vec4<f32>;
  var acc_3_0: vec4<f32>;
  var acc_4_0: vec4<f32>;
  var acc_5_0: vec4<f32>;
  var acc_6_0: vec4<f32>;
  var acc_7_0: vec4<f32>;
  var acc_8_0: vec4<f32>;
  var acc_9_0: vec4<f32>;
  var acc_10_0: vec4<f32>;
  var acc_11_0: vec4<f32>;
  var acc_12_0: vec4<f32>;
  var acc_13_0: vec4<f32>;
  var acc_14_0: vec4<f32>;
  var acc_15_0: vec4<f32>;
  var w_row_0_0: vec4<f32>;
  var w_row_0_1: vec4<f32>;
  var w_row_0_2: vec4<f32>;
  var w_row_0_3: vec4<f32>;
  var x_row_0_0: vec4<f32>;
  var x_row_0_1: vec4<f32>;
  var x_row_0_2: vec4<f32>;
  var x_row_0_3: vec4<f32>;
  var x_row_0_4: vec4<f32>;
  acc_0_0 = vec4<f32>(0.0);
  acc_1_0 = vec4<f32>(0.0);
  acc_2_0 = vec4<f32>(0.0);
  acc_3_0 = vec4<f32>(0.0);
  acc_4_0 = vec4<f32>(0.0);
  acc_5_0 = vec4<f32>(0.0);
  acc_6_0 = vec4<f32>(0.0);
  acc_7_0 = vec4<f32>(0.0);
  acc_8_0 = vec4<f32>(0.0);
  acc_9_0 = vec4<f32>(0.0);
  acc_10_0 = vec4<f32>(0.0);
  acc_11_0 = vec4<f32>(0.0);
  acc_12_0 = vec4<f32>(0.0);
  acc_13_0 = vec4<f32>(0.0);
  acc_14_0 = vec4<f32>(0.0);
  acc_15_0 = vec4<f32>(0.0);
  let x_at: i32 = o_step_block*4;
  let at: i32 = o_step_block*16;
  for (var c: i32 = 0; c < 20; c++) {
    var picked: vec4<f32> = vec4<f32>(0.0);
    let x_at_2: i32 = x_at + c*16;
    if (at >= 1) {
      picked = x[x_at_2 - 1];
    }
    x_row_0_0 = picked;
    var picked_2: vec4<f32> = vec4<f32>(0.0);
    if (at < 64) {
      picked_2 = x[x_at_2];
    }
    x_row_0_1 = picked_2;
    var picked_3: vec4<f32> = vec4<f32>(0.0);
    if (at < 64) {
      picked_3 = x[x_at_2 + 1];
    }
    x_row_0_2 = picked_3;
    var picked_4: vec4<f32> = vec4<f32>(0.0);
    if (at < 64) {
      picked_4 = x[x_at_2 + 2];
    }
    x_row_0_3 = picked_4;
    var picked_5: vec4<f32> = vec4<f32>(0.0);
    if (at < 64) {
      picked_5 = x[x_at_2 + 3];
    }
    x_row_0_4 = picked_5;
    let w_at: i32 = tx + c*256;
    w_row_0_0 = w[w_at];
    w_row_0_1 = w[w_at + 64];
    w_row_0_2 = w[w_at + 128];
    w_row_0_3 = w[w_at + 192];
    acc_0_0 = fma(vec4<f32>(x_row_0_1.x), w_row_0_0, acc_0_0);
    acc_1_0 = fma(vec4<f32>(x_row_0_1.y), w_row_0_0, acc_1_0);
    acc_2_0 = fma(vec4<f32>(x_row_0_1.z), w_row_0_0, acc_2_0);
    acc_3_0 = fma(vec4<f32>(x_row_0_1.w), w_row_0_0, acc_3_0);
    acc_4_0 = fma(vec4<f32>(x_row_0_2.x), w_row_0_0, acc_4_0);
    acc_5_0 = fma(vec4<f32>(x_row_0_2.y), w_row_0_0, acc_5_0);
    acc_6_0 = fma(vec4<f32>(x_row_0_2.z), w_row_0_0, acc_6_0);
    acc_7_0 = fma(vec4<f32>(x_row_0_2.w), w_row_0_0, acc_7_0);
    acc_8_0 = fma(vec4<f32>(x_row_0_3.x), w_row_0_0, acc_8_0);
    acc_9_0 = fma(vec4<f32>(x_row_0_3.y), w_row_0_0, acc_9_0);
    acc_10_0 = fma(vec4<f32>(x_row_0_3.z), w_row_0_0, acc_10_0);
    acc_11_0 = fma(vec4<f32>(x_row_0_3.w), w_row_0_0, acc_11_0);
    acc_12_0 = fma(vec4<f32>(x_row_0_4.x), w_row_0_0, acc_12_0);
    acc_13_0 = fma(vec4<f32>(x_row_0_4.y), w_row_0_0, acc_13_0);
    acc_14_0 = fma(vec4<f32>(x_row_0_4.z), w_row_0_0, acc_14_0);
    acc_15_0 = fma(vec4<f32>(x_row_0_4.w), w_row_0_0, acc_15_0);
    acc_0_0 = fma(vec4<f32>(x_row_0_0.w), w_row_0_1, acc_0_0);
    acc_1_0 = fma(vec4<f32>(x_row_0_1.x), w_row_0_1, acc_1_0);
    acc_2_0 = fma(vec4<f32>(x_row_0_1.y), w_row_0_1, acc_2_0);
    acc_3_0 = fma(vec4<f32>(x_row_0_1.z), w_row_0_1, acc_3_0);
    acc_4_0 = fma(vec4<f32>(x_row_0_1.w), w_row_0_1, acc_4_0);
    acc_5_0 = fma(vec4<f32>(x_row_0_2.x), w_row_0_1, acc_5_0);
    acc_6_0 = fma(vec4<f32>(x_row_0_2.y), w_row_0_1, acc_6_0);
    acc_7_0 = fma(vec4<f32>(x_row_0_2.z), w_row_0_1, acc_7_0);
    acc_8_0 = fma(vec4<f32>(x_row_0_2.w), w_row_0_1, acc_8_0);
    acc_9_0 = fma(vec4<f32>(x_row_0_3.x), w_row_0_1, acc_9_0);
    acc_10_0 = fma(vec4<f32>(x_row_0_3.y), w_row_0_1, acc_10_0);
    acc_11_0 = fma(vec4<f32>(x_row_0_3.z), w_row_0_1, acc_11_0);
    acc_12_0 = fma(vec4<f32>(x_row_0_3.w), w_row_0_1, acc_12_0);
    acc_13_0 = fma(vec4<f32>(x_row_0_4.x), w_row_0_1, acc_13_0);
    acc_14_0 = fma(vec4<f32>(x_row_0_4.y), w_row_0_1, acc_14_0);
    acc_15_0 = fma(vec4<f32>(x_row_0_4.z), w_row_0_1, acc_15_0);
    acc_0_0 = fma(vec4<f32>(x_row_0_0.z), w_row_0_2, acc_0_0);
    acc_1_0 = fma(vec4<f32>(x_row_0_0.w), w_row_0_2, acc_1_0);
    acc_2_0 = fma(vec4<f32>(x_row_0_1.x), w_row_0_2, acc_2_0);
    acc_3_0 = fma(vec4<f32>(x_row_0_1.y), w_row_0_2, acc_3_0);
    acc_4_0 = fma(vec4<f32>(x_row_0_1.z), w_row_0_2, acc_4_0);
    acc_5_0 = fma(vec4<f32>(x_row_0_1.w), w_row_0_2, acc_5_0);
    acc_6_0 = fma(vec4<f32>(x_row_0_2.x), w_row_0_2, acc_6_0);
    acc_7_0 = fma(vec4<f32>(x_row_0_2.y), w_row_0_2, acc_7_0);
    acc_8_0 = fma(vec4<f32>(x_row_0_2.z), w_row_0_2, acc_8_0);
    acc_9_0 = fma(vec4<f32>(x_row_0_2.w), w_row_0_2, acc_9_0);
    acc_10_0 = fma(vec4<f32>(x_row_0_3.x), w_row_0_2, acc_10_0);
    acc_11_0 = fma(vec4<f32>(x_row_0_3.y), w_row_0_2, acc_11_0);
    acc_12_0 = fma(vec4<f32>(x_row_0_3.z), w_row_0_2, acc_12_0);
    acc_13_0 = fma(vec4<f32>(x_row_0_3.w), w_row_0_2, acc_13_0);
    acc_14_0 = fma(vec4<f32>(x_row_0_4.x), w_row_0_2, acc_14_0);
    acc_15_0 = fma(vec4<f32>(x_row_0_4.y), w_row_0_2, acc_15_0);
    acc_0_0 = fma(vec4<f32>(x_row_0_0.y), w_row_0_3, acc_0_0);
    acc_1_0 = fma(vec4<f32>(x_row_0_0.z), w_row_0_3, acc_1_0);
    acc_2_0 = fma(vec4<f32>(x_row_0_0.w), w_row_0_3, acc_2_0);
    acc_3_0 = fma(vec4<f32>(x_row_0_1.x), w_row_0_3, acc_3_0);
    acc_4_0 = fma(vec4<f32>(x_row_0_1.y), w_row_0_3, acc_4_0);
    acc_5_0 = fma(vec4<f32>(x_row_0_1.z), w_row_0_3, acc_5_0);
    acc_6_0 = fma(vec4<f32>(x_row_0_1.w), w_row_0_3, acc_6_0);
    acc_7_0 = fma(vec4<f32>(x_row_0_2.x), w_row_0_3, acc_7_0);
    acc_8_0 = fma(vec4<f32>(x_row_0_2.y), w_row_0_3, acc_8_0);
    acc_9_0 = fma(vec4<f32>(x_row_0_2.z), w_row_0_3, acc_9_0);
    acc_10_0 = fma(vec4<f32>(x_row_0_2.w), w_row_0_3, acc_10_0);
    acc_11_0 = fma(vec4<f32>(x_row_0_3.x), w_row_0_3, acc_11_0);
    acc_12_0 = fma(vec4<f32>(x_row_0_3.y), w_row_0_3, acc_12_0);
    acc_13_0 = fma(vec4<f32>(x_row_0_3.z), w_row_0_3, acc_13_0);
    acc_14_0 = fma(vec4<f32>(x_row_0_3.w), w_row_0_3, acc_14_0);
    acc_15_0 = fma(vec4<f32>(x_row_0_4.x), w_row_0_3, acc_15_0);
  }
  let y_at: i32 = o_step_block*1024 + tile*64 + tx;
  y[y_at] = acc_0_0;
  y[y_at + 64] = acc_1_0;
  y[y_at + 128] = acc_2_0;
  if (at < 64) {
    y[y_at + 192] = acc_3_0;
    y[y_at + 256] = acc_4_0;
    y[y_at + 320] = acc_5_0;
    y[y_at + 384] = acc_6_0;
    y[y_at + 448] = acc_7_0;
    y[y_at + 512] = acc_8_0;
    y[y_at + 576] = acc_9_0;
    y[y_at + 640] = acc_10_0;
    y[y_at + 704] = acc_11_0;
    y[y_at + 768] = acc_12_0;
    y[y_at + 832] = acc_13_0;
    y[y_at + 896] = acc_14_0;
    y[y_at + 960] = acc_15_0;
  }
}
