// fir
//   input x: f32[2, 1030]
//   input w: f32[2, 31]
//   output y: f32[2, 1000]
// y_product: 4 x 2 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// y_product: definition: scheduled
@compute @workgroup_size(64, 1, 1)
fn y_product(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let tile: i32 = i32(workgroup_id.x);
  let c: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  var acc: vec4<f32>;
  var w_row_0_0: f32;
  var w_row_1_0: f32;
  var w_row_2_0: f32;
  var w_row_3_0: f32;
  var w_row_4_0: f32;
  var w_row_5_0: f32;
  var w_row_6_0: f32;
  var w_row_7_0: f32;
  var x_row_0_0: f32;
  var x_row_0_1: f32;
  var x_row_0_2: f32;
  var x_row_0_3: f32;
  var x_row_0_4: f32;
  var x_row_0_5: f32;
  var x_row_0_6: f32;
  var x_row_0_7: f32;
  var x_row_0_8: f32;
  var x_row_0_9: f32;
  var x_row_0_10: f32;
  acc = vec4<f32>(0.0);
  let x_at: i32 = c*1030 + tile*256 + tx*4;
  let at: i32 = tile*64 + tx;
  let at_2: i32 = tile*256 + tx*4;
  let w_at: i32 = c*31;
  for (var k_group: i32 = 0; k_group < 4; k_group++) {
    var picked: f32 = 0.0;
    let x_at_2: i32 = x_at + k_group*8;
    let at_3: i32 = at_2 + k_group*8;
    if (at < 250 && at_3 < 1032) {
      picked = x[x_at_2];
    }
    x_row_0_0 = picked;
    var picked_2: f32 = 0.0;
    if (at < 250 && at_3 < 1032) {
      picked_2 = x[x_at_2 + 1];
    }
    x_row_0_1 = picked_2;
    var picked_3: f32 = 0.0;
    if (at < 250 && at_3 < 1028) {
      picked_3 = x[x_at_2 + 2];
    }
    x_row_0_2 = picked_3;
    var picked_4: f32 = 0.0;
    if (at < 250 && at_3 < 1028) {
      picked_4 = x[x_at_2 + 3];
    }
    x_row_0_3 = picked_4;
    var picked_5: f32 = 0.0;
    if (at < 250 && at_3 < 1028) {
      picked_5 = x[x_at_2 + 4];
    }
    x_row_0_4 = picked_5;
    var picked_6: f32 = 0.0;
    if (at < 250 && at_3 < 1028) {
      picked_6 = x[x_at_2 + 5];
    }
    x_row_0_5 = picked_6;
    var picked_7: f32 = 0.0;
    if (at < 250 && at_3 < 1024) {
      picked_7 = x[x_at_2 + 6];
    }
    x_row_0_6 = picked_7;
    var picked_8: f32 = 0.0;
    if (at < 250 && at_3 < 1024) {
      picked_8 = x[x_at_2 + 7];
    }
    x_row_0_7 = picked_8;
    var picked_9: f32 = 0.0;
    if (at < 250 && at_3 < 1024) {
      picked_9 = x[x_at_2 + 8];
    }
    x_row_0_8 = picked_9;
    var picked_10: f32 = 0.0;
    if (at < 250 && at_3 < 1024) {
      picked_10 = x[x_at_2 + 9];
    }
    x_row_0_9 = picked_10;
    var picked_11: f32 = 0.0;
    if (at < 250 && at_3 < 1020) {
      picked_11 = x[x_at_2 + 10];
    }
    x_row_0_10 = picked_11;
    let w_at_2: i32 = w_at + k_group*8;
    w_row_0_0 = w[w_at_2];
    w_row_1_0 = w[w_at_2 + 1];
    w_row_2_0 = w[w_at_2 + 2];
    w_row_3_0 = w[w_at_2 + 3];
    w_row_4_0 = w[w_at_2 + 4];
    w_row_5_0 = w[w_at_2 + 5];
    w_row_6_0 = w[w_at_2 + 6];
    var picked_12: f32 = 0.0;
    if (k_group*8 < 24) {
      picked_12 = w[w_at_2 + 7];
    }
    w_row_7_0 = picked_12;
    acc = fma(vec4<f32>(x_row_0_0, x_row_0_1, x_row_0_2, x_row_0_3), vec4<f32>(w_row_0_0), acc);
    acc = fma(vec4<f32>(x_row_0_1, x_row_0_2, x_row_0_3, x_row_0_4), vec4<f32>(w_row_1_0), acc);
    acc = fma(vec4<f32>(x_row_0_2, x_row_0_3, x_row_0_4, x_row_0_5), vec4<f32>(w_row_2_0), acc);
    acc = fma(vec4<f32>(x_row_0_3, x_row_0_4, x_row_0_5, x_row_0_6), vec4<f32>(w_row_3_0), acc);
    acc = fma(vec4<f32>(x_row_0_4, x_row_0_5, x_row_0_6, x_row_0_7), vec4<f32>(w_row_4_0), acc);
    acc = fma(vec4<f32>(x_row_0_5, x_row_0_6, x_row_0_7, x_row_0_8), vec4<f32>(w_row_5_0), acc);
    acc = fma(vec4<f32>(x_row_0_6, x_row_0_7, x_row_0_8, x_row_0_9), vec4<f32>(w_row_6_0), acc);
    acc = fma(vec4<f32>(x_row_0_7, x_row_0_8, x_row_0_9, x_row_0_10), vec4<f32>(w_row_7_0), acc);
  }
  let y_at: i32 = c*250 + tile*64 + tx;
  if (at < 250) {
    y[y_at] = acc;
  }
}
