// The kernels of graph-oracle's smoke runner. No #include: compiles with bare NVRTC, which needs no headers and no GPU.
//
// Built with --fmad=false and no fast-math flag, so that a product and a sum are rounded apart, as on the host. Every
// sum goes from the first element to the last, and 16-bit floats are computed in f32 and rounded once.
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef int i32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;

// A strided window on a buffer: offset and strides in elements.
struct View { u64 at; i64 offset; i64 dims; i64 size[8]; i64 stride[8]; };
// What the members of a collective give.
struct Views { View of[16]; };

static __device__ __noinline__ i64 place(const View& v, i64 i) {
  i64 at = v.offset;
  #pragma unroll 1
  for (int d = (int)v.dims - 1; d >= 0; --d) { at += i % v.size[d] * v.stride[d]; i /= v.size[d]; }
  return at;
}

// bf16 is u16 here: values are loaded to and stored from f32.
struct bf16 { u16 bits; };
__device__ __forceinline__ f32 value(f32 x) { return x; }
__device__ __forceinline__ f64 value(f64 x) { return x; }
__device__ __forceinline__ i32 value(i32 x) { return x; }
__device__ __forceinline__ i64 value(i64 x) { return x; }
__device__ __forceinline__ f32 value(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
template <typename T, typename V> struct Store { static __device__ __forceinline__ T of(V x) { return (T)x; } };
template <typename V> struct Store<bf16, V> {
  // To nearest, ties to even; NaNs are quiet.
  static __device__ __forceinline__ bf16 of(V x) {
    u32 b = __float_as_uint(x); bf16 r;
    r.bits = (b & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (u16)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
    return r;
  }
};

#define EACH(n) _Pragma("unroll 1") for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
#define ELEMENT(T, v, i) ((T*)(v).at)[place(v, i)]

#define BINARY(NAME, T, V, OP) \
extern "C" __global__ void NAME(View o, View a, View b, i64 n) { \
  EACH(n) { V x = value(ELEMENT(T, a, i)), y = value(ELEMENT(T, b, i)); ELEMENT(T, o, i) = Store<T, V>::of(x OP y); } }
#define UNARY(NAME, T, V, Y) \
extern "C" __global__ void NAME(View o, View a, i64 n) { \
  EACH(n) { V x = value(ELEMENT(T, a, i)); ELEMENT(T, o, i) = Store<T, V>::of(Y); } }
#define RANKS(NAME, T, V, END) \
extern "C" __global__ void NAME(View o, Views in, i64 ranks, i64 from, i64 n) { \
  EACH(n) { V sum = 0; _Pragma("unroll 1") for (i64 r = 0; r < ranks; ++r) sum += value(ELEMENT(T, in.of[r], from + i)); \
    ELEMENT(T, o, i) = Store<T, V>::of(END); } }
#define MATMUL(NAME, T, V) \
extern "C" __global__ void NAME(View o, View a, View b, i64 m, i64 k, i64 n) { \
  EACH(m * n) { i64 row = i / n, column = i % n; V sum = 0; \
    _Pragma("unroll 1") for (i64 t = 0; t < k; ++t) sum += value(ELEMENT(T, a, row * k + t)) * value(ELEMENT(T, b, t * n + column)); \
    ELEMENT(T, o, i) = Store<T, V>::of(sum); } }
#define CAST(NAME, F, T, V) \
extern "C" __global__ void NAME(View o, View a, i64 n) { \
  EACH(n) ELEMENT(T, o, i) = Store<T, V>::of((V)value(ELEMENT(F, a, i))); }

#define ARITHMETIC(T, V) BINARY(add_##T, T, V, +) BINARY(sub_##T, T, V, -) BINARY(mul_##T, T, V, *) RANKS(ranks_sum_##T, T, V, sum)
#define FLOATS(T, V) RANKS(ranks_avg_##T, T, V, sum / (V)ranks) MATMUL(matmul_##T, T, V) \
  UNARY(relu_##T, T, V, x < 0 ? (V)0 : x) UNARY(neg_##T, T, V, -x)
ARITHMETIC(f32, f32) ARITHMETIC(f64, f64) ARITHMETIC(bf16, f32) ARITHMETIC(i32, i32) ARITHMETIC(i64, i64)
FLOATS(f32, f32) FLOATS(f64, f64) FLOATS(bf16, f32)
CAST(cast_f32_bf16, f32, bf16, f32) CAST(cast_bf16_f32, bf16, f32, f32) CAST(cast_f32_f64, f32, f64, f64)
CAST(cast_f64_f32, f64, f32, f32) CAST(cast_i64_f32, i64, f32, f32) CAST(cast_i32_f32, i32, f32, f32)

// Element from + i of s to element to + i of d, whatever they are.
extern "C" __global__ void copy(View d, View s, i64 bytes, i64 to, i64 from, i64 n) {
  EACH(n) switch (bytes) {
    case 1: ELEMENT(u8, d, to + i) = ELEMENT(u8, s, from + i); break;
    case 2: ELEMENT(u16, d, to + i) = ELEMENT(u16, s, from + i); break;
    case 4: ELEMENT(u32, d, to + i) = ELEMENT(u32, s, from + i); break;
    default: ELEMENT(u64, d, to + i) = ELEMENT(u64, s, from + i);
  }
}

extern "C" __global__ void fill(View d, i64 bytes, u64 word, i64 n) {
  EACH(n) switch (bytes) {
    case 1: ELEMENT(u8, d, i) = (u8)word; break;
    case 2: ELEMENT(u16, d, i) = (u16)word; break;
    case 4: ELEMENT(u32, d, i) = (u32)word; break;
    default: ELEMENT(u64, d, i) = word;
  }
}

// Keeps a stream busy for about this long.
extern "C" __global__ void spin(u64 nanoseconds) {
  u64 from, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
  do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - from < nanoseconds);
}
