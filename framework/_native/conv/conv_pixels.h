// Products of weights with the windows of images: y[row, pixel] = sum over k of a[row, k] * window[k, pixel].
//
// The pixels of a chunk of images are cut into panels of a few vectors. A panel's windows are read in place
// through a table of offsets, where enough neighbouring pixels are neighbours in memory, else they are packed
// first; either way panels run across lines and images.
#pragma once

#include <numeric>

#include "conv/conv_kernel.h"
#include "conv/conv_planes.h"
#include "base/scratch.h"
#include "pooling/largest.h"

namespace fw::windows {

// Where the pixels of a result lie, in the planes that are read and in the result.
struct PixelGrid {
    int64_t count[conv_dims];    // pixels per dimension
    int64_t from[conv_dims];     // steps in memory
    int64_t to[conv_dims];
    int64_t from_image, to_image, to_start;

    // Neighbouring lines that are one line in both memories become one.
    void merge() {
        for (int d = conv_dims - 1; d > 0; --d) {
            int e = d - 1;
            while (e > 0 && count[e] == 1) --e;
            if (count[conv_dims - 1] * to[conv_dims - 1] != to[e] || from[e] != count[conv_dims - 1]) return;
            count[conv_dims - 1] *= count[e];
            count[e] = 1;
        }
    }
    // Whether no two pixels are read at the same place (windows of mere padding may be).
    bool distinct() const {
        return count[2] <= from[1] && count[1] * from[1] <= from[0] && count[0] * from[0] <= from_image;
    }
    // Whether the pixels of an image follow each other in the result.
    bool joined() const {
        return to_start == 0 && to[2] == 1 && (lines() == 1 || to[1] == count[2]) &&
               (count[0] == 1 || to[0] == count[1] * count[2]);
    }
    int64_t length() const { return count[2]; }
    int64_t lines() const { return count[0] * count[1]; }   // per image
    int64_t pixels() const { return lines() * length(); }
    int64_t line_from(int64_t line) const {
        int64_t rest = line % lines();
        return line / lines() * from_image + rest / count[1] * from[0] + rest % count[1] * from[1];
    }
    int64_t line_to(int64_t line) const {
        int64_t rest = line % lines();
        return to_start + line / lines() * to_image + rest / count[1] * to[0] + rest % count[1] * to[1];
    }
};

// How vectors of pixels are made: cut from lines; from whole planes, gaps included; from all pixels without
// gaps, of one or two stretches each; packed. Or pixels are taken one by one, and vectors are of channels.
enum class Panels { lines, flat, pairs, packed, channels };

template <class T> struct PixelProduct {
    PixelGrid grid;
    Planes* planes;
    const T* a = nullptr;          // for each group the tiles of pack_weights, or all rows in place
    bool packed_a = true;
    int64_t k = 0, groups = 1, rows = 0;   // of a group
    std::vector<int64_t> offset;   // k of them
    int64_t group_from = 0;        // memory step of a group's channels
    Epilogue<T> epilogue;
    int64_t to_row = 0;            // memory step of a row of the result
    Panels panels = Panels::lines;
    int64_t tile_rows = channel_rows;
    std::vector<int64_t> even;     // the offsets in a packed panel
    bool by_line = false;          // too few rows for tiles
    bool squares = false;          // results are the largest of 2 x 2 pixels each; only where `pools`

    // Whether the largest of squares can be found before they are written, in vectors of channels.
    bool pools() const { return has_channel_tiles && packed_a && rows % channel_cols<T> == 0 && grid.count[0] == 1; }
    void choose();
    void run(const T* from, T* to, int64_t images) const;

  private:
    struct Piece {  // a stretch of a panel's columns
        int64_t at, count, place;
    };
    struct Panel {
        PixelTile<T> tile;
        int vectors, pieces_from, pieces_to;
        Piece from[pixel_cols<T>], to[pixel_cols<T>];
    };

    static constexpr int64_t most_packed = 1536;  // steps of k: a panel stays in the second-level cache
    int64_t vectors(int64_t images) const;
    void place_vector(Panel& panel, int j, int64_t v, const T* from, T* to, T* aside, int64_t images) const;
    void from_lines(Panel& panel, int64_t first, const T* from, T* to, T* aside, bool alone) const;
    void from_plane(Panel& panel, int j, int64_t v, const T* from, int64_t images) const;
    void from_pixels(Panel& panel, int j, int64_t v, const T* from, int64_t images) const;
    void add_piece(Panel& panel, int64_t at, int64_t count, int64_t place, bool joins) const;
    void pack(T* to, const Panel& panel, const T* from, const int64_t* offset, int64_t count) const;
    void finish(const Panel& panel, const T* aside, T* to, int64_t row, int64_t rows) const;
    void run_lines(const T* from, T* to, int64_t images) const;
    void run_channels(const T* from, T* to, int64_t images) const;
    void channel_block(const T* from, T* to, int64_t group, int64_t row, int64_t row_end, int64_t pixel) const;
    void square_block(const T* from, T* to, int64_t group, int64_t row, int64_t row_end, int64_t square) const;
    ChannelTile<T> channels_from(int64_t row) const;
    void channel_sums(ChannelTile<T>& tile, const T* const* b, int64_t count, T* sums) const;
    void one_panel(const T* from, T* to, int64_t group, int64_t first, int64_t last, int64_t row,
                   int64_t row_end, int64_t images, bool alone) const;
};

// What a panel costs beyond its multiplications, measured in them: what is put aside or packed is copied in pieces, the
// more of them the shorter lines are.
template <class T> void PixelProduct<T>::choose() {
    constexpr double n = lanes<T>;
    const double length = double(grid.length()), lines = double(grid.lines()), rows_ = double(rows);
    const double dense = double(grid.pixels()) / n;
    const double aside = 1 + (5 + 45 / rows_ + 25 * n / length) / double(k);
    const double packs = has_pairs ? 3 + 2 * n / length : 7 + 4 * n / length;
    const double whole = grid.length() >= lanes<T> || planes->copied ? 1 : 1e9;
    const double by_lines = lines * ((grid.length() + lanes<T> - 1) / lanes<T>) * whole *
                            (grid.length() < lanes<T> || grid.to[2] != 1 ? aside : 1);
    const double by_planes = (planes->copied && grid.distinct() ? double(planes->image) / n : 1e9) * aside;
    const double by_packing = dense * (1 + packs / rows_);
    const bool two = has_pairs && grid.length() + std::gcd(grid.length(), int64_t(lanes<T>)) >= lanes<T>;
    const double by_pairs = two && rows >= 6 ? dense * 1.02 : 1e9;
    const bool vectors_of_channels = has_channel_tiles && packed_a && rows % channel_cols<T> == 0 && grid.joined();
    const double by_channels = vectors_of_channels ? dense * (1 + 8 / double(k)) : 1e9;
    const double least = std::min({by_lines, by_planes, by_pairs, by_packing, by_channels});
    panels = squares || by_channels == least ? Panels::channels
             : by_lines == least  ? Panels::lines
             : by_planes == least ? Panels::flat
             : by_pairs == least  ? Panels::pairs
                                  : Panels::packed;
    if (panels == Panels::packed)
        for (int64_t i = 0; i < std::min(k, most_packed); ++i) even.push_back(i * pixel_cols<T>);
    const int64_t tiles = (rows + channel_rows - 1) / channel_rows;
    tile_rows = panels == Panels::channels ? channel_cols<T> : (rows + tiles - 1) / tiles;
    by_line = groups > 1 && rows <= 2 && grid.length() >= lanes<T>;
    if (by_line) tile_rows = 1;
}

template <class T> int64_t PixelProduct<T>::vectors(int64_t images) const {
    constexpr int64_t n = lanes<T>;
    if (panels == Panels::lines) return images * grid.lines() * ((grid.length() + n - 1) / n);
    if (panels != Panels::flat) return (images * grid.pixels() + n - 1) / n;
    return (grid.line_from(images * grid.lines() - 1) + grid.length() + n - 1) / n;
}

// A stretch of the panel's columns goes to `place`.
template <class T>
void PixelProduct<T>::add_piece(Panel& panel, int64_t at, int64_t count, int64_t place, bool joins) const {
    Piece* last = panel.pieces_to ? &panel.to[panel.pieces_to - 1] : nullptr;
    if (joins && last && last->at + last->count == at && last->place + last->count * grid.to[2] == place)
        last->count += count;
    else
        panel.to[panel.pieces_to++] = {at, count, place};
}

// The vectors of the panel, cut from lines. The last of a line may overlap the one before, which gives the same numbers
// twice; but not where another thread may be writing these (`alone`: the panel before is another thread's).
template <class T>
void PixelProduct<T>::from_lines(Panel& panel, int64_t first, const T* from, T* to, T* aside, bool alone) const {
    constexpr int64_t n = lanes<T>;
    const int64_t length = grid.length(), per = (length + n - 1) / n;
    const bool direct = grid.to[2] == 1;
    int64_t line = first / per, at = (first - line * per) * n;
    const T* source = from + grid.line_from(line);
    int64_t target = grid.line_to(line);
    PixelTile<T>& tile = panel.tile;
    for (int j = 0; j < panel.vectors; ++j) {
        const int64_t count = std::min(n, length - at);
        if (direct && (count == n || (length > n && (j > 0 || !alone)))) {
            const int64_t start = at - (n - count);
            tile.b[j] = source + start;
            tile.c[j] = to + target + start;
            tile.row[j] = to_row;
        } else {
            const int64_t back = planes->copied ? 0 : n - count;  // so that nothing behind the image is read
            tile.b[j] = source + at - back;
            tile.c[j] = aside + j * n;
            tile.row[j] = pixel_cols<T>;
            add_piece(panel, j * n + back, count, target + at * grid.to[2], false);
        }
        at += n;
        if (at >= length && j + 1 < panel.vectors) {
            at = 0, ++line;
            source = from + grid.line_from(line);
            target = grid.line_to(line);
        }
    }
}

template <class T>
void PixelProduct<T>::from_plane(Panel& panel, int j, int64_t v, const T* from, int64_t images) const {
    constexpr int64_t n = lanes<T>;
    const int64_t read = v * n, lines = grid.lines(), before = panel.pieces_to;
    const int64_t image = read / grid.from_image;
    int64_t rest = read % grid.from_image;
    int64_t line = std::min(rest / grid.from[0], grid.count[0] - 1) * grid.count[1];
    rest -= line / grid.count[1] * grid.from[0];
    line += std::min(rest / grid.from[1], grid.count[1] - 1) + image * lines;
    panel.tile.b[j] = from + read;
    for (; line < images * lines; ++line) {
        const int64_t start = grid.line_from(line);
        if (start >= read + n) break;
        const int64_t low = std::max(start, read), high = std::min(start + grid.length(), read + n);
        if (low < high)
            add_piece(panel, j * n + low - read, high - low, grid.line_to(line) + (low - start) * grid.to[2],
                      panel.pieces_to > before);
    }
}

template <class T>
void PixelProduct<T>::from_pixels(Panel& panel, int j, int64_t v, const T* from, int64_t images) const {
    constexpr int64_t n = lanes<T>;
    const int64_t length = grid.length(), before = panel.pieces_to, first_piece = panel.pieces_from;
    const bool packs = panels == Panels::packed;
    const int64_t end = std::min(images * grid.pixels(), (v + 1) * n);
    for (int64_t at = v * n; at < end;) {
        const int64_t line = at / length, within = at % length, count = std::min(length - within, end - at);
        const int64_t column = j * n + at - v * n, place = grid.line_from(line) + within;
        add_piece(panel, column, count, grid.line_to(line) + within * grid.to[2], panel.pieces_to > before);
        const bool joins = panel.pieces_from > (packs ? 0 : first_piece);
        Piece* last = joins ? &panel.from[panel.pieces_from - 1] : nullptr;
        if (last && last->at + last->count == column && last->place + last->count == place)
            last->count += count;
        else
            panel.from[panel.pieces_from++] = {column, count, place};
        at += count;
    }
    if (packs) return;
    PixelTile<T>& tile = panel.tile;
    const Piece& one = panel.from[first_piece];
    const Piece& two = panel.from[panel.pieces_from - 1];
    tile.b[j] = from + one.place;
    tile.more[j] = from + two.place - (two.at - j * n);
    tile.first[j] = (int64_t(1) << one.count) - 1;
    if (panel.pieces_from - first_piece > 1)
        tile.second[j] = ((int64_t(1) << two.count) - 1) << (two.at - j * n);
    else
        tile.second[j] = 0;
}

// Vector v of all becomes the panel's vector j: where it is read, where it goes.
template <class T>
void PixelProduct<T>::place_vector(Panel& panel, int j, int64_t v, const T* from, T* to, T* aside,
                                   int64_t images) const {
    const int before = panel.pieces_to;
    if (panels == Panels::flat) from_plane(panel, j, v, from, images);
    else from_pixels(panel, j, v, from, images);
    const Piece& only = panel.to[before];
    const bool direct = grid.to[2] == 1 && panel.pieces_to == before + 1 && only.count == lanes<T>;
    if (direct) --panel.pieces_to;
    panel.tile.c[j] = direct ? to + only.place : aside + j * lanes<T>;
    panel.tile.row[j] = direct ? to_row : pixel_cols<T>;
}

template <class T> FW_INLINE void half_copy(T* to, const T* from) {
    typedef T Half __attribute__((vector_size(FW_BYTES / 2)));
    Half v;
    std::memcpy(&v, from, sizeof v);
    std::memcpy(to, &v, sizeof v);
}

template <class T>
void PixelProduct<T>::pack(T* to, const Panel& panel, const T* from, const int64_t* table,
                           int64_t count) const {
    constexpr int n = lanes<T>;
    constexpr int64_t width = pixel_cols<T>;
    if (planes->copied) {
        for (int64_t i = 0; i < count; ++i, to += width) {
            const T* at = from + table[i];
            for (int p = 0; p < panel.pieces_from; ++p) {  // what a vector writes too much is overwritten
                const Piece& piece = panel.from[p];
                if (piece.count <= n / 2) {
                    half_copy(to + piece.at, at + piece.place);
                    continue;
                }
                for (int64_t q = 0; q < piece.count; q += n)
                    store(to + piece.at + q, load(at + piece.place + q));
            }
        }
        return;
    }
    for (int64_t i = 0; i < count; ++i, to += width) {
        const T* at = from + table[i];
        for (int p = 0; p < panel.pieces_from; ++p) {
            const Piece& piece = panel.from[p];
            int64_t q = 0;
            for (; q + n <= piece.count; q += n) store(to + piece.at + q, load(at + piece.place + q));
            if (q < piece.count) store(to + piece.at + q, load_first(at + piece.place + q, piece.count - q));
        }
    }
}

template <class T>
void PixelProduct<T>::finish(const Panel& panel, const T* aside, T* to, int64_t row, int64_t count) const {
    constexpr int n = lanes<T>;
    const int64_t step = grid.to[2];
    to += row * to_row;
    for (int64_t i = 0; i < count; ++i, to += to_row, aside += pixel_cols<T>) {
        for (int p = 0; p < panel.pieces_to; ++p) {
            const Piece& piece = panel.to[p];
            const T* source = aside + piece.at;
            T* target = to + piece.place;
            if (step != 1) {
                store_steps(target, source, piece.count, step);
                continue;
            }
            int64_t q = 0;
            for (; q + n <= piece.count; q += n) store(target + q, load(source + q));
            if (q < piece.count)
                store_first(target + q, load_first(source + q, piece.count - q), piece.count - q);
        }
    }
}

template <class T>
void PixelProduct<T>::one_panel(const T* from, T* to, int64_t group, int64_t first, int64_t last, int64_t row,
                                int64_t row_end, int64_t images, bool alone) const {
    constexpr int64_t n = lanes<T>;
    Panel panel;
    panel.pieces_from = panel.pieces_to = 0;
    panel.vectors = int(last - first);
    const bool packs = panels == Panels::packed;
    const int64_t steps = packs ? std::min(k, most_packed) : k;
    T* aside = scratch<T>(2, rows * pixel_cols<T>);
    from += group * group_from;
    to += group * rows * to_row;
    if (panels == Panels::lines) from_lines(panel, first, from, to, aside, alone);
    else for (int j = 0; j < panel.vectors; ++j) place_vector(panel, j, first + j, from, to, aside, images);
    T* packed = packs ? scratch<T>(3, (steps + 2) * pixel_cols<T>) : nullptr;
    PixelTile<T>& tile = panel.tile;
    if (packs)
        for (int j = 0; j < panel.vectors; ++j) tile.b[j] = packed + j * n;
    tile.offset = packs ? even.data() : offset.data();
    const bool pairs = panels == Panels::pairs;
    const auto run_tile = (pairs ? pixel_tiles<T, true> : pixel_tiles<T, false>).at;
    T* start[pixel_vectors];
    std::copy(tile.c, tile.c + panel.vectors, start);
    for (int64_t done = 0; done < k; done += steps) {
        tile.k = std::min(steps, k - done);
        tile.add = done > 0;
        tile.end = epilogue.more() && done + tile.k == k ? &epilogue : nullptr;
        if (packs) pack(packed, panel, from, offset.data() + done, tile.k);
        for (int64_t i = row; i < row_end; i += tile_rows) {
            const int64_t height = std::min(tile_rows, row_end - i);
            tile.a_step = packed_a ? height : 1;
            tile.a_row = packed_a ? 1 : k;
            tile.a = a + group * rows * k + i * k + done * tile.a_step;
            tile.start = epilogue.bias ? epilogue.bias + group * rows + i : nullptr;
            tile.end_row = group * rows + i;
            for (int j = 0; j < panel.vectors; ++j) tile.c[j] = start[j] + i * tile.row[j];
            run_tile[height - 1][panel.vectors - 1](tile);
            if (panel.pieces_to && done + tile.k == k)
                finish(panel, aside + i * pixel_cols<T>, to, i, height);
        }
    }
}

template <class T> void PixelProduct<T>::run_lines(const T* from, T* to, int64_t images) const {
    const int64_t work = grid.pixels() * k / lanes<T>;
    parallel(groups * rows * images, 1 + (1 << 13) / work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t image = i % images, row = i / images;
            const LineProduct<T> product{a + row * k, k, offset.data(), epilogue, row, grid.length(), grid.to[2]};
            const T* source = from + row / rows * group_from;
            for (int64_t line = image * grid.lines(); line < (image + 1) * grid.lines(); ++line)
                line_product(product, source + grid.line_from(line), to + row * to_row + grid.line_to(line));
        }
    });
}

constexpr int64_t block_pixels = 4 * channel_pixels;   // whole tiles of pixels, and whole vectors of them
constexpr int64_t block_squares = 4 * channel_pixels;  // whole vectors of squares, each of four pixels

template <class T> ChannelTile<T> PixelProduct<T>::channels_from(int64_t row) const {
    ChannelTile<T> tile;
    tile.a = a + row * k;
    tile.k = k, tile.offset = offset.data();
    tile.end = epilogue.more() ? &epilogue : nullptr, tile.end_row = row;
    tile.start = epilogue.bias ? epilogue.bias + row : nullptr;
    return tile;
}

// The sums of up to block_pixels pixels, for each of them channel by channel.
template <class T>
void PixelProduct<T>::channel_sums(ChannelTile<T>& tile, const T* const* b, int64_t count, T* sums) const {
    for (int64_t j = 0; j < count; j += channel_pixels) {
        tile.b = b + j, tile.c = sums + j * channel_cols<T>;
        channel_tiles<T>.at[std::min<int64_t>(channel_pixels, count - j) - 1](tile);
    }
}

// Some pixels of an image, from `pixel` on.
template <class T>
void PixelProduct<T>::channel_block(const T* from, T* to, int64_t group, int64_t row, int64_t row_end, int64_t pixel) const {
    const int64_t length = grid.length(), count = std::min(block_pixels, grid.pixels() - pixel);
    const T* b[block_pixels];
    int64_t line = pixel / length, within = pixel - line * length;
    const T* source = from + grid.line_from(line);
    for (int64_t j = 0; j < count; ++j) {
        b[j] = source + within;
        if (++within == length && j + 1 < count) within = 0, source = from + grid.line_from(++line);
    }
    T sums[block_pixels * channel_cols<T>];
    for (int64_t i = row; i < row_end; i += channel_cols<T>) {
        ChannelTile<T> tile = channels_from(group * rows + i);
        channel_sums(tile, b, count, sums);
        give_lines(sums, count, to + i * to_row + pixel, to_row);
    }
}

// The largest of some squares, from `square` on.
template <class T>
void PixelProduct<T>::square_block(const T* from, T* to, int64_t group, int64_t row, int64_t row_end, int64_t square) const {
    constexpr int64_t n = lanes<T>, cols = channel_cols<T>, each = block_pixels / 4;
    const int64_t wide = grid.count[2] / 2, below = grid.from[1], count = std::min(block_squares, to_row - square);
    const T* b[4 * block_squares];
    int64_t line = square / wide, within = square - line * wide;
    for (int64_t j = 0; j < count; ++j) {
        const T* corner = from + 2 * (line * below + within);
        b[4 * j] = corner, b[4 * j + 1] = corner + 1;
        b[4 * j + 2] = corner + below, b[4 * j + 3] = corner + below + 1;
        if (++within == wide) within = 0, ++line;
    }
    T sums[block_pixels * cols], largest[block_squares * cols];
    const Epilogue<T> before = epilogue.unclipped();  // the largest alone are clipped: they are the same numbers
    const bool clips = epilogue.clips();
    for (int64_t i = row; i < row_end; i += cols) {
        ChannelTile<T> tile = channels_from(group * rows + i);
        tile.end = before.more() ? &before : nullptr;
        for (int64_t j = 0; j < count; j += each) {
            const int64_t now = std::min(each, count - j);
            channel_sums(tile, b + 4 * j, 4 * now, sums);
            for (int64_t q = 0; q < now; ++q) {
                for (int64_t part = 0; part < cols; part += n) {
                    const T* v = sums + 4 * q * cols + part;
                    const Vec<T> most = largest_of<T>(load(v), load(v + cols), load(v + 2 * cols), load(v + 3 * cols));
                    store(largest + (j + q) * cols + part, clips ? epilogue.clip(most) : most);
                }
            }
        }
        give_lines(largest, count, to + i * to_row + square, to_row);
    }
}

template <class T> void PixelProduct<T>::run_channels(const T* from, T* to, int64_t images) const {
    const int64_t each = squares ? block_squares : block_pixels, tiles = rows / tile_rows;
    const int64_t blocks = ((squares ? to_row : grid.pixels()) + each - 1) / each;
    // few blocks: the rows are shared out too
    const int64_t parts = std::clamp<int64_t>(2 * threads() / (blocks * images * groups), 1, tiles);
    const int64_t part_rows = (tiles + parts - 1) / parts * tile_rows;
    const int64_t work = part_rows * k * ((squares ? 4 * each : each) / lanes<T>);
    parallel(groups * images * blocks * parts, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i % parts * part_rows, block = i / parts % blocks, rest = i / parts / blocks;
            const int64_t image = rest % images, group = rest / images;
            if (row >= rows) continue;
            const T* source = from + image * grid.from_image + group * group_from;
            T* target = to + image * grid.to_image + group * rows * to_row;
            const int64_t row_end = std::min(rows, row + part_rows);
            if (squares) square_block(source, target, group, row, row_end, block * each);
            else channel_block(source, target, group, row, row_end, block * each);
        }
    });
}

// `from` points to the planes of the images, `to` to the result of the first of them.
template <class T> void PixelProduct<T>::run(const T* from, T* to, int64_t images) const {
    if (by_line) return run_lines(from, to, images);
    if constexpr (has_channel_tiles)
        if (panels == Panels::channels) return run_channels(from, to, images);
    const int64_t all = vectors(images), most = (all + pixel_vectors - 1) / pixel_vectors;
    const int64_t each = (all + most - 1) / most, count = (all + each - 1) / each;
    const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    // few panels: the rows are shared out too
    const int64_t parts = std::clamp<int64_t>(2 * threads() / (count * groups), 1, tiles);
    const int64_t part_rows = (tiles + parts - 1) / parts * tile_rows;
    const int64_t work = part_rows * k * pixel_vectors;  // vector multiplications in a task
    parallel(groups * count * parts, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i % parts * part_rows, first = i / parts % count * each;
            if (row < rows)
                one_panel(from, to, i / parts / count, first, std::min(first + each, all), row,
                          std::min(rows, row + part_rows), images, parts > 1 || i == begin);
        }
    });
}

// Weights as PixelProduct reads them: tiles of rows, for each k the rows side by side.
// Row i of group g at p < k is from(g, p)[i * step].
template <class T, class From>
void pack_weights(T* to, int64_t groups, int64_t rows, int64_t k, int64_t tile_rows, int64_t step,
                  From&& from) {
    const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    parallel(groups * tiles, 1 + (1 << 13) / (tile_rows * k), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t g = t / tiles, first = t % tiles * tile_rows;
            const int64_t height = std::min(tile_rows, rows - first);
            T* tile = to + (g * rows + first) * k;
            for (int64_t p = 0; p < k; ++p) {
                const T* column = from(g, p) + first * step;
                for (int64_t i = 0; i < height; ++i) *tile++ = column[i * step];
            }
        }
    });
}

}  // namespace fw::windows
