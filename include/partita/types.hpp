// SPDX-License-Identifier: Apache-2.0
// The small types every interface of Partita shares: data types, dims, layouts, attribute values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace partita {

/// Element types; the numbers are those of the oneDNN Graph C ABI. s4 and u4 pack two elements a byte, low half first.
enum class Dtype : int32_t {
  undef = 0, f16 = 1, bf16 = 2, f32 = 3, s32 = 4, s8 = 5, u8 = 6, f64 = 7, boolean = 8,
  f8_e5m2 = 9, f8_e4m3 = 10, s4 = 11, u4 = 12, s64 = 16,
};

/// How a tensor lies in memory: not said, the library may choose, by strides in elements, or known only by a layout id.
/// Partita never makes an opaque one and compiles for none; graphs (dumps of other libraries) may have them.
enum class Layout : int32_t { undef = 0, any = 1, strided = 2, opaque = 3 };

/// What the caller promises about a tensor's content: constant data may be preprocessed once and kept.
enum class Property : int32_t { undef = 0, variable = 1, constant = 2, host_scalar = 3 };

enum class EngineKind : int32_t { any = 0, cpu = 1 };

/// fusion: every pattern; debug: each operator alone.
enum class Policy : int32_t { fusion = 1, debug = 2 };

/// Which lower precision a graph's f32 mathematics may use inside.
enum class FpMath : int32_t { strict = 0, bf16 = 1, f16 = 2, any = 3, tf32 = 4 };

inline constexpr int kMaxRank = 12;
inline constexpr int64_t kUnknownDim = std::numeric_limits<int64_t>::min();

std::string_view name_of(Dtype dtype);
std::string_view name_of(Layout layout);
std::string_view name_of(Property property);
std::string_view name_of(FpMath mode);

/// Up to kMaxRank numbers, in place: dims, strides, or anything with one entry an axis. What is given beyond that is
/// left out, and overflowed() from then on: graph::add_op and partition::compile refuse a tensor with such dims or
/// strides.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<int64_t> values)
      : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  constexpr explicit Dims(std::span<const int64_t> values)
      : size_(static_cast<int>(std::min(values.size(), static_cast<size_t>(kMaxRank)))),
        overflowed_(values.size() > static_cast<size_t>(kMaxRank)) {
    std::copy_n(values.begin(), size_, v_.begin());
  }
  constexpr Dims(int size, int64_t value) : size_(std::clamp(size, 0, kMaxRank)), overflowed_(size > kMaxRank) {
    std::fill_n(v_.begin(), size_, value);
  }

  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  /// More than kMaxRank numbers were given; these are the first.
  constexpr bool overflowed() const { return overflowed_; }
  constexpr int64_t& operator[](int i) { return v_[static_cast<size_t>(i)]; }
  constexpr int64_t operator[](int i) const { return v_[static_cast<size_t>(i)]; }
  constexpr int64_t* begin() { return v_.data(); }
  constexpr int64_t* end() { return v_.data() + size_; }
  constexpr const int64_t* begin() const { return v_.data(); }
  constexpr const int64_t* end() const { return v_.data() + size_; }
  constexpr int64_t& back() { return v_[static_cast<size_t>(size_ - 1)]; }
  constexpr int64_t back() const { return v_[static_cast<size_t>(size_ - 1)]; }
  constexpr void push_back(int64_t value) {
    if (size_ == kMaxRank)
      overflowed_ = true;
    else
      v_[static_cast<size_t>(size_++)] = value;
  }
  constexpr void insert(int at, int64_t value) {
    const bool full = size_ == kMaxRank;
    push_back(value);
    if (!full) std::rotate(begin() + at, end() - 1, end());
  }
  constexpr void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  constexpr operator std::span<const int64_t>() const { return {v_.data(), static_cast<size_t>(size_)}; }
  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    return a.overflowed_ == b.overflowed_ && std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<int64_t, kMaxRank> v_{};
  int size_ = 0;
  bool overflowed_ = false;
};

/// The value of an attribute. monostate = absent, a state of its own. A copy is made first and moved in: a copy that
/// gets no memory inside the variant makes GNU's library (seen with version 12) destroy what was never made.
class AttrValue
    : public std::variant<std::monostate, bool, int64_t, float, std::string, std::vector<int64_t>, std::vector<float>> {
 public:
  using variant::variant;
  AttrValue() = default;
  AttrValue(const AttrValue& other) : variant(copied(other)) {}
  AttrValue(AttrValue&&) noexcept = default;
  AttrValue& operator=(const AttrValue& other) { return *this = AttrValue(other); }
  AttrValue& operator=(AttrValue&&) noexcept = default;
  ~AttrValue() = default;

 private:
  static variant copied(const variant& other) {
    return std::visit(
        [](const auto& value) {
          auto copy = value;
          return variant(std::in_place_type<decltype(copy)>, std::move(copy));
        },
        other);
  }
};

}  // namespace partita
