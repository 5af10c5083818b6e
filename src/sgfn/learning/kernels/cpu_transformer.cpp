// Causal pre-norm transformers on a CPU, letter by letter with everything kept that the gradient reads, and the gradient.
//
// Trajectories are shared out between threads, which meet at the end of a letter and of the gradient alone. Arrays are
// [trajectories, positions, entries]. Widths and widths of heads are multiples of 16. See cpu_transformer.py.

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
static const int ROWS = 8, PANEL = 2;  // of a tile whose sums stay in registers: rows, and vectors of columns
#else
static const int ROWS = 4, PANEL = 1;
#endif
static const int CHUNK = 64;  // rows of trajectories that the gradient takes at once

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
        return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(a), (__m512bh)_mm512_loadu_si512(b));
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
#pragma GCC unroll 2
        for (int j = 0; j < V; j++) sums[i][j] = Lanes{};
    for (int p = 0; p < k; p++, a += step, b += V * W)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++)
#pragma GCC unroll 2
            for (int j = 0; j < V; j++) sums[i][j] = Kind::add(sums[i][j], a[i * row], b + j * W);
    for (int i = 0; i < R; i++)
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
    int i = 0;
    for (; i + ROWS <= m; i += ROWS) tile<Kind, ROWS, V>(k, a + i * row, row, step, b, c + i * ldc, ldc, bias, onto);
    for (; i < m; i++) tile<Kind, 1, V>(k, a + i * row, row, step, b, c + i * ldc, ldc, bias, onto);
}

template <class Kind>
static void product(int m, int n, int k, const typename Kind::Entry* a, long row, long step,
                    const typename Kind::Entry* b, float* c, long ldc, const float* bias, bool onto) {
    int j = 0;
    for (; j + PANEL * W <= n; j += PANEL * W)
        columns<Kind, PANEL>(m, k, a, row, step, b + (long)j * k, c + j, ldc, bias ? bias + j : nullptr, onto);
    for (; j < n; j += W)
        columns<Kind, 1>(m, k, a, row, step, b + (long)j * k, c + j, ldc, bias ? bias + j : nullptr, onto);
}

// Entry (p, j) of a matrix [k, n] in panels
static inline long in_panels(int p, int j, int k, int n) {
    int width = PANEL * W, full = n / width * width;
    int first = j < full ? j / width * width : j / W * W;
    int wide = j < full ? width : W;
    return (long)first * k + (long)p * wide + (j - first);
}

static void pack(const float* source, long row, long column, int k, int n, float* out) {
    for (int p = 0; p < k; p++)
        for (int j = 0; j < n; j += W) {
            float* to = out + in_panels(p, j, k, n);
            for (int i = 0; i < W; i++) to[i] = source[p * row + (j + i) * column];
        }
}

static void pack(const float* source, long row, long column, int k, int n, uint32_t* out) {
    for (int p = 0; p < k / 2; p++)
        for (int j = 0; j < n; j += W) {
            uint32_t* to = out + in_panels(p, j, k / 2, n);
            for (int i = 0; i < W; i++) {
                const float* at = source + 2 * p * row + (j + i) * column;
                to[i] = rounded(at[0]) | rounded(at[row]) << 16;
            }
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

// the network

struct Shape {
    int batch, length, width, heads, layers, threads, cached, spare;  // cached: positions, a multiple of 16
};

// Weights of a block, each where the optimiser keeps it: address and strides of [outputs, inputs]
struct Matrix {
    const float* at;
    long row, column;
};

struct Block {
    const float *mix_scale, *mix_shift, *feed_scale, *feed_shift, *read_bias, *write_bias, *widen_bias, *narrow_bias;
    Matrix read, write, widen, narrow;
};

struct Kept {  // of a block
    float *start, *read, *mixed, *middle, *wide, *keys, *values;
    float *read_pack, *write_pack, *widen_pack, *narrow_pack;
};

struct Slopes {  // gradients of a block's weights, [outputs, inputs]
    float *mix_scale, *mix_shift, *feed_scale, *feed_shift, *read_bias, *write_bias, *widen_bias, *narrow_bias;
    float *read, *write, *widen, *narrow;
};

extern "C" void pack_weights(const Shape* shape, const Block* blocks, const Kept* kept) {
    int h = shape->width;
#pragma omp parallel for num_threads(shape->threads) collapse(2) schedule(static)
    for (int l = 0; l < shape->layers; l++)
        for (int part = 0; part < 4; part++) {
            const Block& b = blocks[l];
            const Kept& k = kept[l];
            if (part == 0) pack(b.read.at, b.read.column, b.read.row, h, 3 * h, k.read_pack);
            if (part == 1) pack(b.write.at, b.write.column, b.write.row, h, h, k.write_pack);
            if (part == 2) pack(b.widen.at, b.widen.column, b.widen.row, h, 4 * h, k.widen_pack);
            if (part == 3) pack(b.narrow.at, b.narrow.column, b.narrow.row, 4 * h, h, k.narrow_pack);
        }
}

// Sums over the entries of a head, for 16 positions whose entries lie side by side
static inline Lanes matched(const float* entries, const float* block, int each) {
    Lanes even = Lanes{}, odd = Lanes{};
    for (int d = 0; d < each; d += 2) {
        even += entries[d] * load(block + d * W);
        odd += entries[d + 1] * load(block + (d + 1) * W);
    }
    return even + odd;
}

// Shares of positions 0..t for one head: exponentials over their sum; keys in blocks of 16 positions, `apart` entries apart
static inline void attend(const float* query, const float* keys, long apart, int each, int t, float* shares) {
    int vectors = t / W + 1;
    float scale = 1.0f / std::sqrt((float)each);
    Lanes most = all(-INFINITY), sum = Lanes{};
    const Words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int v = 0; v < vectors; v++) {
        Lanes found = matched(query, keys + v * apart, each);
        found = lane + v * W <= t ? found * scale : all(-INFINITY);
        most = found > most ? found : most;
        store(shares + v * W, found);
    }
    float top = largest(most);
    for (int v = 0; v < vectors; v++) {
        Lanes share = lane + v * W <= t ? exponential(load(shares + v * W) - top) : Lanes{};
        sum += share;
        store(shares + v * W, share);
    }
    float inverse = 1.0f / total(sum);
    for (int v = 0; v < vectors; v++) store(shares + v * W, load(shares + v * W) * inverse);
}

static inline void ahead(const float* from, long count) {
    for (long i = 0; i < count; i += W) __builtin_prefetch(from + i);
}

// Attention of row t of a trajectory, whose key and value are stored: keys [cached / 16, width, 16], values [cached, width]
static void mix(const Shape& s, const Kept& kept, int b, int t, bool more, float* mixed) {
    int h = s.width, each = h / s.heads;
    long size = (long)s.cached * h, block = (long)h * W;
    const float* row = kept.read + ((long)b * s.length + t) * 3 * h;
    float *keys = kept.keys + b * size, *values = kept.values + b * size;
    float shares[s.heads * s.cached];
    if (more) ahead(keys + size, (t / W + 1) * block), ahead(values + size, (long)(t + 1) * h);
    memcpy(values + (long)t * h, row + 2 * h, sizeof(float) * h);
    float* here = keys + t / W * block + t % W;
    for (int d = 0; d < h; d++) here[d * W] = row[h + d];
    for (int head = 0; head < s.heads; head++)
        attend(row + head * each, keys + (long)head * each * W, block, each, t, shares + head * s.cached);
    for (int j = 0; j < h; j += 4 * W) {
        int many = h - j < 4 * W ? (h - j) / W : 4;
        Lanes sums[4] = {};
        const float* of[4];
        for (int i = 0; i < 4; i++) of[i] = shares + (j + (i < many ? i : 0) * W) / each * s.cached;
        for (int p = 0; p <= t; p++)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                sums[i] += of[i][p] * load(values + (long)p * h + j + (i < many ? i * W : 0));
        for (int i = 0; i < many; i++) store(mixed + j + i * W, sums[i]);
    }
}

// Row t of each trajectory, from its items: representations [batch, width] at `out`, rows of which are `apart` entries apart
extern "C" void letter(const Shape* shape, const Block* blocks, const Kept* kept, const float* item, long apart_items,
                       const float* position, const float* scale, const float* shift, float* out, long apart, int t) {
    const Shape& s = *shape;
    int h = s.width;
#pragma omp parallel num_threads(s.threads)
    {
        int me = omp_get_thread_num(), many = omp_get_num_threads();
        int first = (long)s.batch * me / many, count = (long)s.batch * (me + 1) / many - first;
        float* room = (float*)aligned_alloc(64, sizeof(float) * (size_t)(count + 1) * 6 * h);
        float *normed = room, *mixed = normed + (long)count * h, *wide = mixed + (long)count * h;
        for (int i = 0; i < count; i++) {
            float* row = kept[0].start + ((long)(first + i) * s.length + t) * h;
            for (int j = 0; j < h; j += W)
                store(row + j, load(item + (first + i) * apart_items + j) + load(position + j));
        }
        for (int l = 0; l < s.layers; l++) {
            const Block& w = blocks[l];
            const Kept& k = kept[l];
            long from = (long)first * s.length + t, stride = s.length;
            float *start = k.start + from * h, *middle = k.middle + from * h, *end = kept[l + 1].start + from * h;
            float *read = k.read + from * 3 * h, *raised = k.wide + from * 4 * h;
            for (int i = 0; i < count; i++)
                normalise(start + i * stride * h, h, w.mix_scale, w.mix_shift, normed + (long)i * h);
            product<Number>(count, 3 * h, h, normed, h, 1, k.read_pack, read, stride * 3 * h, w.read_bias, false);
            for (int i = 0; i < count; i++) {
                mix(s, k, first + i, t, i + 1 < count, mixed + (long)i * h);
                memcpy(k.mixed + (from + i * stride) * h, mixed + (long)i * h, sizeof(float) * h);
                memcpy(middle + i * stride * h, start + i * stride * h, sizeof(float) * h);
            }
            product<Number>(count, h, h, mixed, h, 1, k.write_pack, middle, stride * h, w.write_bias, true);
            for (int i = 0; i < count; i++) {
                normalise(middle + i * stride * h, h, w.feed_scale, w.feed_shift, normed + (long)i * h);
                memcpy(end + i * stride * h, middle + i * stride * h, sizeof(float) * h);
            }
            product<Number>(count, 4 * h, h, normed, h, 1, k.widen_pack, raised, stride * 4 * h, w.widen_bias, false);
            for (int i = 0; i < count; i++)
                for (int j = 0; j < 4 * h; j += W) {
                    Lanes x = load(raised + i * stride * 4 * h + j), below, density;
                    normal_law(x, below, density);
                    store(wide + (long)i * 4 * h + j, x * below);
                }
            product<Number>(count, h, 4 * h, wide, 4 * h, 1, k.narrow_pack, end, stride * h, w.narrow_bias, true);
        }
        for (int i = 0; i < count; i++)
            normalise(kept[s.layers].start + ((long)(first + i) * s.length + t) * h, h, scale, shift,
                      out + (first + i) * apart);
        free(room);
    }
}

// Gradient of one trajectory's attention: of queries, keys and values [length, 3 width], from that of what was mixed
static void mix_back(const Shape& s, const Kept& kept, int b, const float* slope, float* out, float* room) {
    int h = s.width, each = h / s.heads, cached = s.cached, length = s.length;
    const float* rows = kept.read + (long)b * length * 3 * h;
    const float* mixed = kept.mixed + (long)b * length * h;
    const float* keys = kept.keys + (long)b * cached * h;
    float *shares = room, *pulls = shares + (long)length * cached, *values = pulls + (long)length * cached;
    float scale = 1.0f / std::sqrt((float)each);
    long block = (long)each * W;
    for (int head = 0; head < s.heads; head++) {
        int at = head * each;
        for (int p = 0; p < length; p++)
            for (int d = 0; d < each; d++)
                values[p / W * block + d * W + p % W] = rows[(long)p * 3 * h + 2 * h + at + d];
        for (int t = 0; t < length; t++) {
            const float *query = rows + (long)t * 3 * h + at, *g = slope + (long)t * h + at;
            float *share = shares + (long)t * cached, *pull = pulls + (long)t * cached;
            attend(query, keys + (long)at * W, (long)h * W, each, t, share);
            Lanes same = Lanes{};
            for (int d = 0; d < each; d += W) same += load(g + d) * load(mixed + (long)t * h + at + d);
            float level = total(same);
            for (int v = 0; v <= t / W; v++)
                store(pull + v * W, load(share + v * W) * (matched(g, values + v * block, each) - level) * scale);
            for (int d = 0; d < each; d += W) {
                Lanes even = Lanes{}, odd = Lanes{};
                const float* key = rows + h + at + d;
                int p = 0;
                for (; p < t; p += 2) {
                    even += pull[p] * load(key + (long)p * 3 * h);
                    odd += pull[p + 1] * load(key + (long)(p + 1) * 3 * h);
                }
                if (p == t) even += pull[p] * load(key + (long)p * 3 * h);
                store(out + (long)t * 3 * h + at + d, even + odd);
            }
        }
        for (int p = 0; p < length; p++)
            for (int d = 0; d < each; d += W) {
                Lanes key = Lanes{}, value = Lanes{};
                for (int t = p; t < length; t++) {
                    key += pulls[(long)t * cached + p] * load(rows + (long)t * 3 * h + at + d);
                    value += shares[(long)t * cached + p] * load(slope + (long)t * h + at + d);
                }
                store(out + (long)p * 3 * h + h + at + d, key);
                store(out + (long)p * 3 * h + 2 * h + at + d, value);
            }
    }
}

struct Packs {  // a block's weights as right factors of the gradient of inputs
    void *read, *write, *widen, *narrow;
};

template <class Kind> struct Worker {
    typedef typename Kind::Entry Entry;
    const Shape& s;
    Entry *left, *across, *right;
    float *inner, *outer, *normed;
    Worker(const Shape& shape) : s(shape) {
        long most = 4L * s.width * CHUNK;
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

template <class Kind>
static void back_through(const Shape& s, int first, int count, int l, const Block& w, const Kept& k, const Packs& packs,
                         const Slopes& found, float* slope, float* mixed_slope, float* read_slope, int length) {
    typedef typename Kind::Entry Entry;
    Worker<Kind> worker(s);
    int h = s.width;
    long rows = (long)count * length;
    for (long r = 0; r < rows; r += CHUNK) {
        int m = rows - r < CHUNK ? rows - r : CHUNK;
        float* g = slope + r * h;
        const float *raised = k.wide + ((long)first * length + r) * 4 * h, *middle = k.middle + ((long)first * length + r) * h;
        for (long i = 0; i < (long)m * 4 * h; i += W) {
            Lanes x = load(raised + i), below, density;
            normal_law(x, below, density);
            store(worker.inner + i, x * below);
            store(worker.normed + i, below + x * density);  // the slope of a GELU
        }
        worker.layer(m, h, 4 * h, g, worker.inner, (const Entry*)packs.narrow, worker.outer, found.narrow, found.narrow_bias);
        for (long i = 0; i < (long)m * 4 * h; i += W)
            store(worker.outer + i, load(worker.outer + i) * load(worker.normed + i));
        for (int i = 0; i < m; i++) normalise(middle + (long)i * h, h, w.feed_scale, w.feed_shift, worker.normed + (long)i * h);
        worker.layer(m, 4 * h, h, worker.outer, worker.normed, (const Entry*)packs.widen, worker.inner, found.widen, found.widen_bias);
        for (int i = 0; i < m; i++)
            normalise_back(worker.inner + (long)i * h, middle + (long)i * h, h, w.feed_scale, g + (long)i * h, true,
                           found.feed_scale, found.feed_shift);
        const float* mixed = k.mixed + ((long)first * length + r) * h;
        worker.layer(m, h, h, g, mixed, (const Entry*)packs.write, mixed_slope + r * h, found.write, found.write_bias);
    }
    float* room = (float*)aligned_alloc(64, sizeof(float) * (2L * length + h) * s.cached);
    memset(room, 0, sizeof(float) * (2L * length + h) * s.cached);
    for (int i = 0; i < count; i++)
        mix_back(s, k, first + i, mixed_slope + (long)i * length * h, read_slope + (long)i * length * 3 * h, room);
    free(room);
    for (long r = 0; r < rows; r += CHUNK) {
        int m = rows - r < CHUNK ? rows - r : CHUNK;
        const float* start = k.start + ((long)first * length + r) * h;
        for (int i = 0; i < m; i++) normalise(start + (long)i * h, h, w.mix_scale, w.mix_shift, worker.normed + (long)i * h);
        worker.layer(m, 3 * h, h, read_slope + r * 3 * h, worker.normed, (const Entry*)packs.read, worker.inner, found.read, found.read_bias);
        for (int i = 0; i < m; i++)
            normalise_back(worker.inner + (long)i * h, start + (long)i * h, h, w.mix_scale, slope + (r + i) * h, true,
                           found.mix_scale, found.mix_shift);
    }
}

template <class Kind>
static void gradient_as(const Shape& s, const Block* blocks, const Kept* kept, const float* scale, const float* slope,
                        float* item_slope, float* found, long size) {
    typedef typename Kind::Entry Entry;
    int h = s.width, n = s.length;
    long each = 12L * h * h;
    Entry* room = (Entry*)aligned_alloc(64, sizeof(Entry) * each * s.layers);
    float* all_found = (float*)aligned_alloc(64, sizeof(float) * size * s.threads);
#pragma omp parallel num_threads(s.threads)
    {
        int me = omp_get_thread_num(), many = omp_get_num_threads();
        int first = (long)s.batch * me / many, count = (long)s.batch * (me + 1) / many - first;
        float* mine = all_found + size * me;
        memset(mine, 0, sizeof(float) * size);
        Packs packs[s.layers];
        for (int l = 0; l < s.layers; l++) {
            Entry* at = room + each * l;
            packs[l] = {at, at + 3L * h * h, at + 4L * h * h, at + 8L * h * h};
        }
#pragma omp for collapse(2) schedule(static)
        for (int l = 0; l < s.layers; l++)
            for (int part = 0; part < 4; part++) {
                const Block& b = blocks[l];
                if (part == 0) pack(b.read.at, b.read.row, b.read.column, 3 * h, h, (Entry*)packs[l].read);
                if (part == 1) pack(b.write.at, b.write.row, b.write.column, h, h, (Entry*)packs[l].write);
                if (part == 2) pack(b.widen.at, b.widen.row, b.widen.column, 4 * h, h, (Entry*)packs[l].widen);
                if (part == 3) pack(b.narrow.at, b.narrow.row, b.narrow.column, h, 4 * h, (Entry*)packs[l].narrow);
            }
        float* mixed_slope = (float*)aligned_alloc(64, sizeof(float) * ((size_t)count * n + 1) * 4 * h);
        float* read_slope = mixed_slope + (long)count * n * h;
        float* rows = item_slope + (long)first * n * h;
        const float* end = kept[s.layers].start + (long)first * n * h;
        float* last = mine + (12L * h * h + 13L * h) * s.layers;
        for (long i = 0; i < (long)count * n; i++)
            normalise_back(slope + ((long)first * n + i) * h, end + i * h, h, scale, rows + i * h, false, last, last + h);
        for (int l = s.layers - 1; l >= 0; l--) {
            float* at = mine + (12L * h * h + 13L * h) * l;
            Slopes f = {at, at + h, at + 2 * h, at + 3 * h, at + 4 * h, at + 7 * h, at + 8 * h, at + 12 * h};
            f.read = at + 13 * h;
            f.write = f.read + 3L * h * h;
            f.widen = f.write + (long)h * h;
            f.narrow = f.widen + 4L * h * h;
            back_through<Kind>(s, first, count, l, blocks[l], kept[l], packs[l], f, rows, mixed_slope, read_slope, n);
        }
        free(mixed_slope);
#pragma omp barrier
#pragma omp for schedule(static)
        for (long i = 0; i < size / W; i++) {
            Lanes sum = load(all_found + i * W);
            for (int other = 1; other < many; other++) sum += load(all_found + size * other + i * W);
            store(found + i * W, sum);
        }
    }
    free(room);
    free(all_found);
}

// Gradient of all weights into `found`, block by block in the order of `Slopes`, then of the last scale and shift; of items
extern "C" void gradient(const Shape* shape, const Block* blocks, const Kept* kept, const float* scale, const float* slope,
                         float* item_slope, float* found, long size, int rounded_products) {
    if (rounded_products)
        gradient_as<Bfloat>(*shape, blocks, kept, scale, slope, item_slope, found, size);
    else
        gradient_as<Number>(*shape, blocks, kept, scale, slope, item_slope, found, size);
}

extern "C" int has_bfloat() {
#ifdef __AVX512BF16__
    return 1;
#else
    return 0;
#endif
}
