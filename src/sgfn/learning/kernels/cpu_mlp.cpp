// MLPs on prefixes that grow by a letter, with everything kept that the gradient reads, and the gradient.
//
// The first layer of a prefix is that of the empty one plus one row of a table for each letter. Trajectories are shared out
// between threads; arrays are [trajectories, positions, width]; widths are multiples of 16. See cpu_mlp.py.

#include "cpu_products.h"

struct Shape {
    int batch, length, width, layers, threads, symbols, activation, spare;
};

struct Layer {  // a layer after the first: weight, bias, and the weight in panels
    Matrix weight;
    const float* bias;
    float* pack;
};

// Activation at x, and its slope: 0 relu, 1 gelu, 2 silu
template <int KIND> static inline void activate(Lanes x, Lanes& value, Lanes& slope) {
    if (KIND == 0) {
        value = x > 0.0f ? x : Lanes{};
        slope = x > 0.0f ? all(1.0f) : Lanes{};
    } else if (KIND == 1) {
        Lanes below, density;
        normal_law(x, below, density);
        value = x * below;
        slope = below + x * density;
    } else {
        Lanes small = exponential(x < 0.0f ? x : -x);
        Lanes share = (x < 0.0f ? small : all(1.0f)) / (1.0f + small);
        value = x * share;
        slope = share * (1.0f + x * (1.0f - share));
    }
}

static void activate_rows(int kind, const float* rows, long apart, int m, int n, float* out, long out_apart, float* slopes) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j += W) {
            Lanes value, slope, x = load(rows + i * apart + j);
            if (kind == 0) activate<0>(x, value, slope);
            else if (kind == 1) activate<1>(x, value, slope);
            else activate<2>(x, value, slope);
            store(out + i * out_apart + j, value);
            if (slopes) store(slopes + (long)i * n + j, slope);
        }
}

extern "C" void pack_weights(const Shape* shape, const Layer* layers) {
    int h = shape->width;
    for (int l = 0; l < shape->layers - 1; l++)
        pack(layers[l].weight.at, layers[l].weight.column, layers[l].weight.row, h, h, layers[l].pack);
}

// Row t of each trajectory, from the letter at t - 1: the inputs of all activations are kept, [layers] of `sums`
extern "C" void letter(const Shape* shape, const Layer* layers, float* const* sums, const float* table, const float* start,
                       const int64_t* letters, long letters_apart, float* out, int t) {
    const Shape& s = *shape;
    int h = s.width;
#pragma omp parallel num_threads(s.threads)
    {
        auto [me, many, first, count] = part_of(s.batch);
        float* active = (float*)aligned_alloc(64, sizeof(float) * (size_t)(count + 1) * h);
        long apart = (long)s.length * h, from = (long)first * apart + (long)t * h;
        for (int i = 0; i < count; i++) {
            float* row = sums[0] + from + i * apart;
            const float* letter = t ? table + ((long)(t - 1) * s.symbols + letters[(first + i) * letters_apart]) * h : start;
            for (int j = 0; j < h; j += W) store(row + j, t ? load(row - h + j) + load(letter + j) : load(letter + j));
        }
        for (int l = 0; l < s.layers - 1; l++) {
            activate_rows(s.activation, sums[l] + from, apart, count, h, active, h, nullptr);
            product<Number>(count, h, h, active, h, 1, layers[l].pack, sums[l + 1] + from, apart, layers[l].bias, false);
        }
        activate_rows(s.activation, sums[s.layers - 1] + from, apart, count, h, out + from, apart, nullptr);
        free(active);
    }
}

// Gradient of weight and bias of each layer after the first, of the start and of the table, into `found`
extern "C" void gradient(const Shape* shape, const Layer* layers, float* const* sums, const int64_t* letters,
                         long letters_apart, const float* slope, float* found, long size) {
    const Shape& s = *shape;
    int h = s.width, n = s.length;
    long square = (long)h * h;
    float* packs = (float*)aligned_alloc(64, sizeof(float) * square * s.layers);
    float* every = (float*)aligned_alloc(64, sizeof(float) * size * s.threads);
#pragma omp parallel num_threads(s.threads)
    {
        auto [me, many, first, count] = part_of(s.batch);
        float* mine = zeros(every + size * me, size);
#pragma omp for schedule(static)
        for (int l = 0; l < s.layers - 1; l++)
            pack(layers[l].weight.at, layers[l].weight.row, layers[l].weight.column, h, h, packs + square * l);
        Worker<Number> worker(h);
        float* rows = (float*)aligned_alloc(64, sizeof(float) * (long)n * h);
        float* active = (float*)aligned_alloc(64, sizeof(float) * (long)CHUNK * h);
        float* start_slope = mine + (square + h) * (s.layers - 1);
        float* table_slope = start_slope + h;
        for (int i = first; i < first + count; i++) {
            for (int r = 0; r < n; r += CHUNK) {
                int m = n - r < CHUNK ? n - r : CHUNK;
                long from = ((long)i * n + r) * h;
                memcpy(rows + (long)r * h, slope + from, sizeof(float) * m * h);
                for (int l = s.layers - 1; l >= 0; l--) {
                    activate_rows(s.activation, sums[l] + from, h, m, h, active, h, worker.normed);
                    if (l < s.layers - 1) {
                        float* at = mine + (square + h) * l;
                        worker.layer(m, h, h, rows + (long)r * h, active, packs + square * l, worker.inner, at, at + square);
                        memcpy(rows + (long)r * h, worker.inner, sizeof(float) * m * h);
                    }
                    for (long j = 0; j < (long)m * h; j += W)
                        store(rows + (long)r * h + j, load(rows + (long)r * h + j) * load(worker.normed + j));
                }
            }
            for (int t = n - 1; t >= 0; t--) {  // a letter's row is part of all prefixes after it
                float* row = rows + (long)t * h;
                float* to = t ? table_slope + ((long)(t - 1) * s.symbols + letters[i * letters_apart + t - 1]) * h : start_slope;
                for (int j = 0; j < h; j += W) {
                    Lanes sum = load(row + j) + (t + 1 < n ? load(row + h + j) : Lanes{});
                    store(row + j, sum);
                    store(to + j, load(to + j) + sum);
                }
            }
        }
        free(rows);
        free(active);
#pragma omp barrier
        add_parts(every, size, many, found);
    }
    free(packs);
    free(every);
}
