// conv_transpose1d
//   input x: f32[2, 3, 20]
//   input w: f32[3, 8]
//   output y: f32[2, 80]
// gather: 2 x 2 x 1 workgroups of 64 x 1 x 1 threads

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// gather: each output sums the taps that reach it
@compute @workgroup_size(64, 1, 1)
fn gather(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let ot: i32 = i32(workgroup_id.x);
  let n: i32 = i32(workgroup_id.y);
  let tx: i32 = i32(local_invocation_id.x);
  var acc: f32;
  let o: i32 = ot*64 + tx;
  let tx_div_4: i32 = (-tx + 1) >> 2u;
  let at: i32 = ot*16 - tx_div_4;
  let low: i32 = max(at - 1, 0);
  let tx_div_4_2: i32 = (tx + 2) / 4;
  let at_2: i32 = tx_div_4_2 + ot*16;
  let high: i32 = min(at_2 + 1, 20);
  let x_at: i32 = n*60;
  let y_at: i32 = n*80 + ot*64 + tx;
  if (o < 80) {
    acc = 0.0;
    for (var l: i32 = low; l < high; l++) {
      let x_at_2: i32 = x_at + l;
      let w_at: i32 = o - l*4;
      for (var c: i32 = 0; c < 3; c++) {
        let x_at_3: i32 = x_at_2 + c*20;
        let w_at_2: i32 = w_at + c*8;
        acc = fma(x[x_at_3], w[w_at_2 + 2], acc);
      }
    }
    y[y_at] = acc;
  }
}
