// Vectors, products of matrices and gradients of layers that the kernels for CPUs share.
//
// Rows have a multiple of 16 entries. Right factors of products lie in panels of columns; entries are numbers, or pairs of
// bfloat16 along the dimension that is summed.

#pragma once
#include <cstdint>
#include <cstring>
#include <cmath>
#include <cstdlib>
#include <omp.h>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Words __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t Pairs __attribute__((vector_size(64), aligned(4), may_alias));

static const int W = 16;  // lanes
#ifdef __AVX512F__
static const int ROWS = 6, PANEL = 4;  // of a tile whose sums stay in registers: rows, and vectors of columns
#else
static const int ROWS = 4, PANEL = 1;
#endif
static const int DEPTH = 96;   // of a panel that stays in a cache
static const int CHUNK = 192;   // rows of trajectories that the gradient takes at once

static inline Lanes load(const float* p) { return *(const Lanes*)p; }
static inline void store(float* p, Lanes v) { *(Lanes*)p = v; }
static inline Lanes all(float x) { return Lanes{} + x; }

static inline Lanes turned(Lanes v, int by) {
    Words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return __builtin_shuffle(v, (lane + by) & (W - 1));
}

static inline float total(Lanes v) {
#pragma GCC unroll 4
    for (int by = W / 2; by; by /= 2) v += turned(v, by);
    return v[0];
}

static inline float largest(Lanes v) {
#pragma GCC unroll 4
    for (int by = W / 2; by; by /= 2) {
        Lanes other = turned(v, by);
        v = other > v ? other : v;
    }
    return v[0];
}

// 16 rows, `apart` entries apart, as 16 columns that lie side by side
static inline void transpose(const float* rows, long apart, float* out) {
    const Words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Lanes x[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) x[i] = load(rows + i * apart);
#pragma GCC unroll 4
    for (int by = 1; by < W; by *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < W; i++)
            if (!(i & by)) {  // exchange the quarters of a square of 2 by 2 squares that are off its diagonal
                Lanes one = x[i], two = x[i + by];
                x[i] = __builtin_shuffle(one, two, (lane & by) != 0 ? lane - by + W : lane);
                x[i + by] = __builtin_shuffle(one, two, (lane & by) != 0 ? lane + W : lane + by);
            }
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) store(out + i * W, x[i]);
}

// e^x for x <= 0, by 2^n e^r
static inline Lanes exponential(Lanes x) {
    x = x < -87.0f ? all(-87.0f) : x;
    const float magic = 12582912.0f;
    Lanes shifted = x * 1.44269504f + magic;
    Lanes n = shifted - magic;
    Lanes r = x - n * 0.693359375f + n * 2.12194440e-4f;
    Lanes p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    Words power = (((Words)shifted - 0x4B400000) + 127) << 23;
    return p * (Lanes)power;
}

// Share of a normal law below x, and its density (Abramowitz & Stegun 7.1.26)
static inline void normal_law(Lanes x, Lanes& below, Lanes& density) {
    Lanes size = x < 0.0f ? -x : x;
    Lanes bell = exponential(-0.5f * x * x);
    Lanes t = 1.0f / (1.0f + 0.3275911f * 0.70710678f * size);
    Lanes tail = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
    tail = 0.5f * tail * bell;
    below = x < 0.0f ? tail : 1.0f - tail;
    density = 0.39894228f * bell;
}

static inline uint32_t rounded(float x) {  // to bfloat16, nearest even
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline Pairs rounded_lanes(Lanes x) {
    Pairs bits = (Pairs)x;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// products: C [m, n] = A [m, k] B [k, n], B in panels of columns; numbers, or pairs of bfloat16 along k

struct Number {
    typedef float Entry;
    static inline Lanes add(Lanes sum, float a, const float* b) { return sum + a * load(b); }
};

struct Bfloat {
    typedef uint32_t Entry;
    static inline Lanes add(Lanes sum, uint32_t a, const uint32_t* b) {
#ifdef __AVX512BF16__
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(Pairs{} + a), "v"(*(const Pairs*)b));  // GCC's own stores its sums
        return sum;
#else
        Pairs pair = *(const Pairs*)b;
        float low, high;
        uint32_t first = a << 16, second = a & 0xffff0000;
        memcpy(&low, &first, 4);
        memcpy(&high, &second, 4);
        return sum + low * (Lanes)(pair << 16) + high * (Lanes)(pair & 0xffff0000);
#endif
    }
};

template <class Kind, int R, int V>
static inline void tile(int k, const typename Kind::Entry* a, long row, long step, const typename Kind::Entry* b,
                        float* c, long ldc, const float* bias, bool onto) {
    Lanes sums[R][V];
#pragma GCC unroll 8
    for (int i = 0; i < R; i++)
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) sums[i][j] = Lanes{};
    for (int p = 0; p < k; p++, a += step, b += V * W)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++)
#pragma GCC unroll 4
            for (int j = 0; j < V; j++) sums[i][j] = Kind::add(sums[i][j], a[i * row], b + j * W);
#pragma GCC unroll 8  // or sums would be stored in each round, to be indexed here
    for (int i = 0; i < R; i++)
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) {
            Lanes found = sums[i][j];
            if (bias) found += load(bias + j * W);
            if (onto) found += load(c + i * ldc + j * W);
            store(c + i * ldc + j * W, found);
        }
}

template <class Kind, int V>
static void columns(int m, int k, const typename Kind::Entry* a, long row, long step, const typename Kind::Entry* b,
                    float* c, long ldc, const float* bias, bool onto) {
    for (int p = 0; p < k; p += DEPTH, a += DEPTH * step, b += DEPTH * V * W, bias = nullptr, onto = true) {
        int i = 0, deep = k - p < DEPTH ? k - p : DEPTH;
        for (; i + ROWS <= m; i += ROWS) tile<Kind, ROWS, V>(deep, a + i * row, row, step, b, c + i * ldc, ldc, bias, onto);
        for (; i + 2 <= m; i += 2) tile<Kind, 2, V>(deep, a + i * row, row, step, b, c + i * ldc, ldc, bias, onto);
        for (; i < m; i++) tile<Kind, 1, V>(deep, a + i * row, row, step, b, c + i * ldc, ldc, bias, onto);
    }
}

// Columns of the panel of a matrix [k, n] that begins at j: of the widest that fit, then of two vectors, then of one
static inline int panel_at(int j, int n) {
    if (j + PANEL * W <= n) return PANEL * W;
    return PANEL > 2 && j + 2 * W <= n ? 2 * W : W;
}

template <class Kind>
static void product(int m, int n, int k, const typename Kind::Entry* a, long row, long step,
                    const typename Kind::Entry* b, float* c, long ldc, const float* bias, bool onto) {
    for (int j = 0, wide; j < n; j += wide) {
        wide = panel_at(j, n);
        auto some = wide == PANEL * W ? columns<Kind, PANEL> : wide == 2 * W ? columns<Kind, 2> : columns<Kind, 1>;
        some(m, k, a, row, step, b + (long)j * k, c + j, ldc, bias ? bias + j : nullptr, onto);
    }
}

// Entry (p, j) of a matrix [k, n] in panels
static inline long in_panels(int p, int j, int k, int n) {
    int width = PANEL * W, first = j / width * width;
    if (PANEL > 2 && first + width > n && j - first >= 2 * W) first += 2 * W;
    if (first + panel_at(first, n) <= j) first = j / W * W;
    return (long)first * k + (long)p * panel_at(first, n) + (j - first);
}

// Rows p to p + 15 of a matrix by its strides, of columns j to j + 15
static inline void square(const float* source, long row, long column, int p, int j, float* out) {
    const float* at = source + p * row + j * column;
    if (row == 1) return transpose(at, column, out);
    for (int i = 0; i < W; i++)
        for (int c = 0; c < W; c++) out[i * W + c] = at[i * row + c * column];
}

static void pack(const float* source, long row, long column, int k, int n, float* out) {
    float some[W * W];
    for (int p = 0; p < k; p += W)
        for (int j = 0; j < n; j += W) {
            square(source, row, column, p, j, some);
            for (int i = 0; i < W; i++) store(out + in_panels(p + i, j, k, n), load(some + i * W));
        }
}

static void pack(const float* source, long row, long column, int k, int n, uint32_t* out) {
    float some[W * W];
    for (int p = 0; p < k; p += W)
        for (int j = 0; j < n; j += W) {
            square(source, row, column, p, j, some);
            for (int i = 0; i < W; i += 2)
                *(Pairs*)(out + in_panels((p + i) / 2, j, k / 2, n)) =
                    rounded_lanes(load(some + i * W)) | rounded_lanes(load(some + (i + 1) * W)) << 16;
        }
}

// Rows [k, n], as many as there are, as the right factor of a product over rows
static void pack_rows(const float* source, int k, int n, float* out) {
    for (int p = 0; p < k; p++)
        for (int j = 0; j < n; j += W) store(out + in_panels(p, j, k, n), load(source + (long)p * n + j));
}

static void pack_rows(const float* source, int k, int n, uint32_t* out) {
    int pairs = (k + 1) / 2;
    for (int p = 0; p < pairs; p++)
        for (int j = 0; j < n; j += W) {
            const float* at = source + 2L * p * n + j;
            Pairs both = rounded_lanes(load(at));
            if (2 * p + 1 < k) both |= rounded_lanes(load(at + n)) << 16;
            *(Pairs*)(out + in_panels(p, j, pairs, n)) = both;
        }
}

// Rows [k, n] as the left factor of a product over rows: entries of a row, or of two, side by side
static const float* across_rows(const float* source, int k, int n, float*) { return source; }

static const uint32_t* across_rows(const float* source, int k, int n, uint32_t* out) {
    for (int p = 0; p < (k + 1) / 2; p++)
        for (int j = 0; j < n; j += W) {
            const float* at = source + 2L * p * n + j;
            Pairs both = rounded_lanes(load(at));
            if (2 * p + 1 < k) both |= rounded_lanes(load(at + n)) << 16;
            *(Pairs*)(out + (long)p * n + j) = both;
        }
    return out;
}

// Rows [m, n] as the left factor of a product over entries
static const float* along_rows(const float* source, int m, int n, float*) { return source; }

static const uint32_t* along_rows(const float* source, int m, int n, uint32_t* out) {
    uint16_t* to = (uint16_t*)out;
    for (long i = 0; i < (long)m * n; i++) to[i] = (uint16_t)rounded(source[i]);
    return out;
}

template <class Kind> struct Depth { static int of(int k) { return k; } };
template <> struct Depth<Bfloat> { static int of(int k) { return (k + 1) / 2; } };

// rows

static inline void moments(const float* x, int n, float& mean, float& inverse) {
    Lanes sum = Lanes{}, squares = Lanes{};
    for (int j = 0; j < n; j += W) sum += load(x + j);
    mean = total(sum) / n;
    for (int j = 0; j < n; j += W) {
        Lanes centred = load(x + j) - mean;
        squares += centred * centred;
    }
    inverse = 1.0f / std::sqrt(total(squares) / n + 1e-5f);
}

static inline void normalise(const float* x, int n, const float* scale, const float* shift, float* out) {
    float mean, inverse;
    moments(x, n, mean, inverse);
    for (int j = 0; j < n; j += W) store(out + j, (load(x + j) - mean) * inverse * load(scale + j) + load(shift + j));
}

// Gradient of a normalised row: of its input, added or set, and of scale and shift
static inline void normalise_back(const float* slope, const float* x, int n, const float* scale, float* out, bool onto,
                                  float* scale_slope, float* shift_slope) {
    float mean, inverse;
    moments(x, n, mean, inverse);
    Lanes sum = Lanes{}, along = Lanes{};
    for (int j = 0; j < n; j += W) {
        Lanes unit = (load(x + j) - mean) * inverse, g = load(slope + j), scaled = g * load(scale + j);
        sum += scaled;
        along += scaled * unit;
        store(scale_slope + j, load(scale_slope + j) + g * unit);
        store(shift_slope + j, load(shift_slope + j) + g);
    }
    float level = total(sum) / n, tilt = total(along) / n;
    for (int j = 0; j < n; j += W) {
        Lanes unit = (load(x + j) - mean) * inverse;
        Lanes found = (load(slope + j) * load(scale + j) - level - unit * tilt) * inverse;
        store(out + j, onto ? load(out + j) + found : found);
    }
}

static inline void add_rows(const float* rows, int m, int n, float* out) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j += W) store(out + j, load(out + j) + load(rows + (long)i * n + j));
}

// A weight [outputs, inputs] where the optimiser keeps it: address and strides
struct Matrix {
    const float* at;
    long row, column;
};

template <class Kind> struct Worker {
    typedef typename Kind::Entry Entry;
    Entry *left, *across, *right;
    float *inner, *outer, *normed;
    Worker(int widest) {  // `widest`: entries of the widest rows
        long most = (long)widest * CHUNK;
        left = (Entry*)aligned_alloc(64, sizeof(Entry) * most);
        across = (Entry*)aligned_alloc(64, sizeof(Entry) * most);
        right = (Entry*)aligned_alloc(64, sizeof(Entry) * most);
        inner = (float*)aligned_alloc(64, sizeof(float) * most);
        outer = (float*)aligned_alloc(64, sizeof(float) * most);
        normed = (float*)aligned_alloc(64, sizeof(float) * most);
    }
    ~Worker() {
        free(left); free(across); free(right); free(inner); free(outer); free(normed);
    }
    // Gradient of a layer [m, outputs]: of its input to `back`, of its weights and bias added
    void layer(int m, int outputs, int inputs, const float* slope, const float* input, const Entry* weight, float* back,
               float* weight_slope, float* bias_slope) {
        const Entry* rows = along_rows(slope, m, outputs, left);
        product<Kind>(m, inputs, Depth<Kind>::of(outputs), rows, Depth<Kind>::of(outputs), 1, weight, back, inputs,
                      nullptr, false);
        const Entry* pairs = across_rows(slope, m, outputs, across);
        pack_rows(input, m, inputs, right);
        product<Kind>(outputs, inputs, Depth<Kind>::of(m), pairs, 1, outputs, right, weight_slope, inputs, nullptr, true);
        add_rows(slope, m, outputs, bias_slope);
    }
};

struct Part {  // of a batch: this thread, how many there are, the first of its trajectories and their number
    int me, many, first, count;
};

static inline Part part_of(int batch) {
    int me = omp_get_thread_num(), many = omp_get_num_threads(), first = (long)batch * me / many;
    return {me, many, first, (int)((long)batch * (me + 1) / many - first)};
}

static inline float* zeros(float* at, long size) { return (float*)memset(at, 0, sizeof(float) * size); }

// Sums of as many arrays as threads found, which share the work
static inline void add_parts(const float* parts, long size, int many, float* found) {
#pragma omp for schedule(static)
    for (long i = 0; i < size / W; i++) {
        Lanes sum = load(parts + i * W);
        for (int other = 1; other < many; other++) sum += load(parts + size * other + i * W);
        store(found + i * W, sum);
    }
}
