// conv_transpose1d
//   input x: f32[N, C, L]
//   input w: f32[C, K]
//   output y: f32[N, LO]
//   LO = K + L*4 - 8
// gather: min(ceil(LO / 64)*N, 65535) x ceil(ceil(LO / 64)*N / 65535) x 1 workgroups of 64 x 1 x 1 threads

struct Sizes {
  N: i32,
  C: i32,
  L: i32,
  K: i32,
  LO: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// gather: each output sums the taps that reach it
@compute @workgroup_size(64, 1, 1)
fn gather(
  @builtin(workgroup_id) workgroup_id: vec3<u32>,
  @builtin(num_workgroups) num_workgroups: vec3<u32>,
  @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
) {
  let N: i32 = sizes.N;
  let C: i32 = sizes.C;
  let L: i32 = sizes.L;
  let K: i32 = sizes.K;
  let LO: i32 = sizes.LO;
  let wg_x: i32 = i32(workgroup_id.x);
  let wg_y: i32 = i32(workgroup_id.y);
  let wg_row: i32 = i32(num_workgroups.x);
  let tx: i32 = i32(local_invocation_id.x);
  let wg_number: i32 = wg_row*wg_y + wg_x;
  let LO_div_64: i32 = (LO + 63) / 64;
  let n: i32 = wg_number / LO_div_64;
  let ot: i32 = wg_number % LO_div_64;
  var acc: f32;
  if (wg_number < LO_div_64*N) {
    let o: i32 = ot*64 + tx;
    let K_div_4: i32 = (K - tx + 1) >> 2u;
    let at: i32 = ot*16 - K_div_4;
    let low: i32 = max(at + 1, 0);
    let tx_div_4: i32 = (tx + 2) / 4;
    let at_2: i32 = tx_div_4 + ot*16;
    let high: i32 = min(at_2 + 1, L);
    let x_at: i32 = C*L*n;
    let y_at: i32 = LO*n + ot*64 + tx;
    if (o < LO) {
      acc = 0.0;
      for (var l: i32 = low; l < high; l++) {
        let x_at_2: i32 = x_at + l;
        let w_at: i32 = o - l*4;
        for (var c: i32 = 0; c < C; c++) {
          let x_at_3: i32 = x_at_2 + c*L;
          let w_at_2: i32 = w_at + c*K;
          acc = fma(x[x_at_3], w[w_at_2 + 2], acc);
        }
      }
      y[y_at] = acc;
    }
  }
}
