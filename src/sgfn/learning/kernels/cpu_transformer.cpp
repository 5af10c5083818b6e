// Causal pre-norm transformers on a CPU, letter by letter with everything kept that the gradient reads, and the gradient.
//
// Trajectories are shared out between threads, which meet at the end of a letter and of the gradient alone. Arrays are
// [trajectories, positions, entries]. Widths and widths of heads are multiples of 16. See cpu_transformer.py.

#include "cpu_products.h"

// the network

struct Shape {
    int batch, length, width, heads, layers, threads, cached, spare;  // cached: positions, a multiple of 16
};

struct Block {
    const float *mix_scale, *mix_shift, *feed_scale, *feed_shift, *read_bias, *write_bias, *widen_bias, *narrow_bias;
    Matrix read, write, widen, narrow;
};

struct Kept {  // of a block
    float *start, *read, *mixed, *middle, *wide, *keys, *peaks;
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

// Shares of positions 0..t for one head: exponentials over their sum; keys in blocks of 16 positions, `apart` entries
// apart; `peak`: the largest score, and one over the sum
static inline void attend(const float* query, const float* keys, long apart, int each, int t, float* shares, float* peak) {
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
    peak[0] = top, peak[1] = inverse;
    for (int v = 0; v < vectors; v++) store(shares + v * W, load(shares + v * W) * inverse);
}

template <int NEAR = 3> static inline void ahead(const float* from, long count) {
    for (long i = 0; i < count; i += W) __builtin_prefetch(from + i, 0, NEAR);
}

// Attention of row t of a trajectory, whose key is stored: keys [cached / 16, width, 16]; values are where they were read
static void mix(const Shape& s, const Kept& kept, int b, int t, bool more, float* mixed) {
    int h = s.width, each = h / s.heads;
    long size = (long)s.cached * h, block = (long)h * W;
    const float* row = kept.read + ((long)b * s.length + t) * 3 * h;
    float* keys = kept.keys + b * size;
    const float* values = row - (long)t * 3 * h + 2 * h;
    float shares[s.heads * s.cached];
    if (more) {
        ahead(keys + size, (t / W + 1) * block);
        for (int p = 0; p < t; p++) ahead(values + ((long)s.length + p) * 3 * h, h);
    }
    float* here = keys + t / W * block + t % W;
    for (int d = 0; d < h; d++) here[d * W] = row[h + d];
    for (int head = 0; head < s.heads; head++)
        attend(row + head * each, keys + (long)head * each * W, block, each, t, shares + head * s.cached,
               kept.peaks + (((long)b * s.length + t) * s.heads + head) * 2);
    for (int j = 0; j < h; j += 4 * W) {
        int many = h - j < 4 * W ? (h - j) / W : 4;
        Lanes sums[4] = {};
        const float* of[4];
        for (int i = 0; i < 4; i++) of[i] = shares + (j + (i < many ? i : 0) * W) / each * s.cached;
        for (int p = 0; p <= t; p++)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                sums[i] += of[i][p] * load(values + (long)p * 3 * h + j + (i < many ? i * W : 0));
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
        auto [me, many, first, count] = part_of(s.batch);
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

static const int AT_ONCE = 4;  // rows of a trajectory that the gradient of attention takes at once

struct Queries {  // of a head: rows, the last position that each reads (or -1), and what `attend` found of their scores
    const float *query[AT_ONCE], *slope[AT_ONCE];
    float top[AT_ONCE], inverse[AT_ONCE], level[AT_ONCE];
    int upto[AT_ONCE];
};

// 16 entries of the rows from `first` on, the last of `count` repeated, by columns
static inline void in_columns(const float* rows, long apart, int first, int count, float* out) {
    if (first + W <= count) return transpose(rows + first * apart, apart, out);
    float some[W * W];
    for (int i = 0; i < W; i++) store(some + i * W, load(rows + (long)(first + i < count ? first + i : count - 1) * apart));
    transpose(some, W, out);
}

// Shares of positions 0..last and the gradient of their scores, for some rows: keys and values in blocks of 16 positions
static inline void shares_back(const Queries& some, int last, const float* keys, long apart, const float* values, int each,
                               int cached, float* shares, float* pulls) {
    const Words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    float scale = 1.0f / std::sqrt((float)each);
    for (int v = 0; v <= last / W; v++) {
        Lanes found[AT_ONCE] = {}, slopes[AT_ONCE] = {};
        for (int d = 0; d < each; d++) {
            Lanes key = load(keys + v * apart + d * W), value = load(values + ((long)v * each + d) * W);
#pragma GCC unroll 4
            for (int i = 0; i < AT_ONCE; i++) {
                found[i] += some.query[i][d] * key;
                slopes[i] += some.slope[i][d] * value;
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < AT_ONCE; i++) {
            Lanes share = exponential(found[i] * scale - some.top[i]) * some.inverse[i];
            share = lane + v * W <= some.upto[i] ? share : Lanes{};
            store(shares + i * cached + v * W, share);
            store(pulls + i * cached + v * W, share * (slopes[i] - some.level[i]) * scale);
        }
    }
}

// Gradient of 16 entries of the queries, and of the keys and values of positions 0..last, to which it is added
static inline void entries_back(const Queries& some, int last, int d, int cached, const float* shares, const float* pulls,
                                const float* keys, float* out, long apart, int h, int t) {
    Lanes query[AT_ONCE], slope[AT_ONCE], found[AT_ONCE] = {};
#pragma GCC unroll 4
    for (int i = 0; i < AT_ONCE; i++) query[i] = load(some.query[i] + d), slope[i] = load(some.slope[i] + d);
    for (int p = 0; p <= last; p++) {
        float *to = out + p * apart + h + d;
        Lanes key = load(keys + p * apart + d), key_slope = load(to), value_slope = load(to + h);
#pragma GCC unroll 4
        for (int i = 0; i < AT_ONCE; i++) {
            found[i] += pulls[i * cached + p] * key;
            key_slope += pulls[i * cached + p] * query[i];
            value_slope += shares[i * cached + p] * slope[i];
        }
        store(to, key_slope);
        store(to + h, value_slope);
    }
#pragma GCC unroll 4
    for (int i = 0; i < AT_ONCE; i++)
        if (some.upto[i] >= 0) store(out + (t + i) * apart + d, found[i]);
}

// Gradient of one trajectory's attention: of queries, keys and values [length, 3 width], from that of what was mixed
static void mix_back(const Shape& s, const Kept& kept, int b, bool more, const float* slope, float* out, float* room) {
    int h = s.width, each = h / s.heads, cached = s.cached, length = s.length;
    const float* rows = kept.read + (long)b * length * 3 * h;
    const float* peaks = kept.peaks + (long)b * length * 2 * s.heads;
    const float* keys = kept.keys + (long)b * cached * h;
    float *shares = room, *pulls = shares + AT_ONCE * cached, *values = pulls + AT_ONCE * cached;
    for (int i = 0; i < length; i++) memset(out + (long)i * 3 * h + h, 0, sizeof(float) * 2 * h);
    for (int head = 0; head < s.heads; head++) {
        int at = head * each;
        if (more) {  // some of the next trajectory, whose rows are too far apart to be foreseen
            ahead<2>(rows + ((long)length * s.heads + head * length) * 3 * each, (long)length * 3 * each);
            ahead<2>(keys + ((long)cached * s.heads + head * cached) * each, (long)cached * each);
            ahead<2>(kept.mixed + ((long)(b + 1) * length * s.heads + head * length) * each, (long)length * each);
        }
        for (int v = 0; v < cached; v += W)
            for (int d = 0; d < each; d += W) in_columns(rows + 2 * h + at + d, 3 * h, v, length, values + v * each + d * W);
        for (int t = 0; t < length; t += AT_ONCE) {
            Queries some;
            for (int i = 0; i < AT_ONCE; i++) {
                int here = t + i < length ? t + i : length - 1;
                some.upto[i] = t + i < length ? here : -1;
                some.query[i] = rows + (long)here * 3 * h + at;
                some.slope[i] = slope + (long)here * h + at;
                some.top[i] = peaks[(here * s.heads + head) * 2];
                some.inverse[i] = peaks[(here * s.heads + head) * 2 + 1];
                const float* mixed = kept.mixed + ((long)b * length + here) * h + at;
                Lanes same = Lanes{};
                for (int d = 0; d < each; d += W) same += load(some.slope[i] + d) * load(mixed + d);
                some.level[i] = total(same);
            }
            int last = t + AT_ONCE < length ? t + AT_ONCE - 1 : length - 1;
            shares_back(some, last, keys + (long)at * W, (long)h * W, values, each, cached, shares, pulls);
            for (int d = 0; d < each; d += W)
                entries_back(some, last, d, cached, shares, pulls, rows + h + at, out + at, 3 * h, h, t);
        }
    }
}

struct Packs {  // a block's weights as right factors of the gradient of inputs
    void *read, *write, *widen, *narrow;
};

template <class Kind>
static void back_through(const Shape& s, int first, int count, int l, const Block& w, const Kept& k, const Packs& packs,
                         const Slopes& found, float* slope, float* mixed_slope, float* read_slope, int length) {
    typedef typename Kind::Entry Entry;
    int h = s.width;
    Worker<Kind> worker(4 * h);
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
    float* room = (float*)aligned_alloc(64, sizeof(float) * (2L * AT_ONCE + h) * s.cached);
    for (int i = 0; i < count; i++)
        mix_back(s, k, first + i, i + 1 < count, mixed_slope + (long)i * length * h, read_slope + (long)i * length * 3 * h, room);
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
        auto [me, many, first, count] = part_of(s.batch);
        float* mine = zeros(all_found + size * me, size);
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
        add_parts(all_found, size, many, found);
    }
    free(room);
    free(all_found);
}

// Whether products of rounded factors are faster here
extern "C" int rounds_fast() {
#ifdef __AVX512BF16__
    return 1;
#else
    return 0;
#endif
}

// Gradient of all weights into `found`, block by block in the order of `Slopes`, then of the last scale and shift; of items
extern "C" void gradient(const Shape* shape, const Block* blocks, const Kept* kept, const float* scale, const float* slope,
                         float* item_slope, float* found, long size, int rounded_products) {
    if (rounded_products)
        gradient_as<Bfloat>(*shape, blocks, kept, scale, slope, item_slope, found, size);
    else
        gradient_as<Number>(*shape, blocks, kept, scale, slope, item_slope, found, size);
}
