// SPDX-License-Identifier: Apache-2.0
// Coefficients of pieces. They are fitted as those of vector_math.cpp are, each piece around its middle, the first one
// around 0.
#include "kernels/jit/code/vector_pieces.hpp"

#include <array>

#include "kernels/jit/code/vector_narrow.hpp"
#include "kernels/jit/code/vector_parts.hpp"

namespace partita::jit {
namespace {

using Row = std::array<float, kPieces>;

/// Four pieces an octave of t + kMoved: the exponent and two bits below it, modulo 16, number them.
constexpr float kMoved = 1.25f;
constexpr int kBitsBelow = kMantissaBits - 2;

/// Of the pieces.
constexpr Row kMiddles = {1.0f,  1.5f,  2.0f,   2.5f,   3.25f,  4.25f, 5.25f,  6.25f,
                          7.75f, 9.75f, 11.75f, 13.75f, 16.75f, 0.0f,  0.375f, 0.625f};
/// Two to the power of sixteenths.
constexpr Row kRoots = {1.0f,       1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
                        1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};

constexpr std::array<Row, 6> kTail = {{
    {0.26157826f, 0.308671f, 0.336204f, 0.35332832f, 0.3687192f, 0.3797771f, 0.3858132f, 0.38942805f, 0.39260712f,
     0.3948716f, 0.39611334f, 0.3968648f, 0.3975353f, 0.0f, 0.14235166f, 0.20209761f},
    {0.12421429f, 0.07037376f, 0.042625446f, 0.02729645f, 0.015227078f, 0.007907323f, 0.0045606215f, 0.0028445043f,
     0.001561436f, 0.0008104236f, 0.00047155668f, 0.00029755276f, 0.0001662466f, 0.49999997f, 0.28338295f, 0.20032825f},
    {-0.07525004f, -0.037489567f, -0.020111104f, -0.011491804f, -0.0054781325f, -0.0023619386f, -0.0011572146f,
     -0.0006253367f, -0.00028460228f, -0.000119876815f, -5.8636426e-5f, -3.1808417e-5f, -1.47004375e-5f, -0.39893466f,
     -0.20345365f, -0.1342435f},
    {0.037022732f, 0.016440192f, 0.007904112f, 0.0040704967f, 0.0016772952f, 0.00060722965f, 0.0002547919f,
     0.000119827986f, 4.5478973e-5f, 1.5615718e-5f, 6.421306e-6f, 3.0067793e-6f, 1.1484179e-6f, 0.24974522f,
     0.11625949f, 0.07219554f},
    {-0.016065735f, -0.006396456f, -0.0027957521f, -0.0013185722f, -0.0004738388f, -0.00014438546f, -5.2702417e-5f,
     -2.0598287e-5f, -6.8594927e-6f, -1.913448e-6f, -5.858339e-7f, -2.6294893e-7f, -8.1045414e-8f, -0.13003014f,
     -0.05724202f, -0.033460114f},
    {0.0061032376f, 0.0022409013f, 0.00088004663f, 0.00037435428f, 0.00012185116f, 3.167941e-5f, 9.834774e-6f,
     3.5612163e-6f, 9.7224e-7f, 2.2223381e-7f, 6.485963e-8f, 2.2597634e-8f, 6.0397585e-9f, 0.048250556f, 0.02479463f,
     0.014010869f},
}};

constexpr std::array<Row, 6> kSlope = {{
    {0.55342185f, 0.5247638f, 0.5045492f, 0.48965806f, 0.47358352f, 0.45913368f, 0.4492808f, 0.4421587f, 0.43456033f,
     0.42777267f, 0.4231471f, 0.4197958f, 0.41620597f, 0.66507804f, 0.61042f, 0.5837712f},
    {-0.0689564f, -0.04751387f, -0.034344118f, -0.025798883f, -0.017780004f, -0.011727785f, -0.008272062f,
     -0.0061296676f, -0.004184338f, -0.0027516244f, -0.0019435771f, -0.0014445106f, -0.0009911538f, -0.176657f,
     -0.11972915f, -0.09476763f},
    {0.027590891f, 0.01647746f, 0.010436476f, 0.006950528f, 0.0040691854f, 0.0022224758f, 0.0013323282f, 0.0008565022f,
     0.00048622396f, 0.0002606761f, 0.0001551818f, 9.9678604e-5f, 5.6732933e-5f, 0.09763315f, 0.05828024f, 0.04255906f},
    {-0.0101080695f, -0.0053173644f, -0.0029927536f, -0.0017842533f, -0.00089783955f, -0.00041018196f, -0.00021035514f,
     -0.00011782292f, -5.593733e-5f, -2.453782e-5f, -1.2343092e-5f, -6.8535037e-6f, -3.2415924e-6f, -0.04753924f,
     -0.025293598f, -0.017235693f},
    {0.0035195008f, 0.0015876332f, 0.00087478355f, 0.00043717056f, 0.00019467024f, 7.378717e-5f, 3.1615542e-5f,
     1.4750926e-5f, 6.57999e-6f, 2.4004037e-6f, 1.0788906e-6f, 4.7855525e-7f, 1.9336406e-7f, 0.021026025f, 0.010497656f,
     0.006605438f},
    {-0.0011138638f, -0.00046273106f, -0.00021582234f, -0.00010374967f, -4.0188537e-5f, -1.3121159e-5f, -4.984503e-6f,
     -2.1275519e-6f, -7.306799e-7f, -2.1579034e-7f, -7.803187e-8f, -3.2258164e-8f, -1.0702414e-8f, -0.0064725396f,
     -0.0037666294f, -0.0022578058f},
}};

/// In the sum with this, the low bits of an f32 hold the sixteenths of the other term.
constexpr float kSixteenths = 0x1.8p19f;
/// 2 ln 2 as a sum: the first of 11 bits, and times as many sixteenths as fill 13 bits an f32.
constexpr float kDoubleLn2 = 0x1.62cp+0f, kDoubleLn2Rest = 0x1.217f7ep-11f;
/// The series of (exp(-r / 2) - 1) / r, which for |r| up to ln 2 / 16 is 9e-9 from exp(-r / 2).
constexpr float kBellRest[] = {-0.5f, 0.125f, -0.020833334f};
/// (exp(r) - 1) / r, which for |r| up to ln 2 / 32 is 1.8e-9 from exp(r).
constexpr float kExpRest[] = {1.0f, 0.500016809f, 0.166667208f};

std::span<const Row> rows_of(Pieces function) { return function == Pieces::tail ? kTail : kSlope; }

/// A table's number: kMiddle, kRoot, or a function and the power of a coefficient.
constexpr int32_t kMiddle = 0, kRoot = 1, kFirstCoefficient = 2, kFunctions = 2;
int32_t coefficient(Pieces function, int power) {
  return kFirstCoefficient + power * kFunctions + static_cast<int32_t>(function);
}

}  // namespace

std::span<const float> looked_up(int32_t table) {
  if (table >= kFirstNarrowTable) return narrow_table(table);
  if (table == kMiddle) return kMiddles;
  if (table == kRoot) return kRoots;
  const int32_t number = table - kFirstCoefficient;
  return rows_of(static_cast<Pieces>(number % kFunctions))[static_cast<size_t>(number / kFunctions)];
}

Value picked(LaneBuilder& b, Value number, int32_t table) {
  const auto half = [&](int32_t which) { return b.op(LaneOp::table, 0, 0, 0, 2 * table + which); };
  if (looked_up(table).size() == kPieces) return b.op(LaneOp::lookup, number, half(0), 0, table);
  return b.op(LaneOp::lookup_in_two, number, half(0), half(1), table);
}

Value piecewise(LaneBuilder& b, Pieces function, Value t) {
  const Value piece = b.op(LaneOp::shr, b.add(t, b.constant(kMoved)), 0, 0, kBitsBelow);
  const auto lookup = [&](int32_t table) { return picked(b, piece, table); };
  const Value from_middle = b.sub(t, lookup(kMiddle));  // exact: the middle has few bits
  int power = static_cast<int>(rows_of(function).size()) - 1;
  Value sum = lookup(coefficient(function, power));
  while (power-- > 0) sum = b.fma(sum, from_middle, lookup(coefficient(function, power)));
  return sum;
}

namespace {

/// A number as whole sixteenths, which the low bits of `biased` count.
struct Sixteenths {
  Value biased, number;
};

Sixteenths sixteenths_of(LaneBuilder& b, Value biased) { return {biased, b.sub(biased, b.constant(kSixteenths))}; }

/// 2^k without what `scaled` multiplies by.
Value root_of(LaneBuilder& b, const Sixteenths& k) { return picked(b, k.biased, kRoot); }

}  // namespace

Exponential exponential_by_sixteenths(LaneBuilder& b, Value x) {
  const Sixteenths k = sixteenths_of(b, b.fma(x, b.constant(kLog2e), b.constant(kSixteenths)));
  const Value r = b.fnma(k.number, b.constant(kLn2Rest), b.fnma(k.number, b.constant(kLn2), x));
  const Value root = root_of(b, k);
  return {b.fma(b.mul(root, r), polynomial(b, r, kExpRest), root), k.number, {}};
}

/// exp(-t^2 / 2) = 2^k exp(-r / 2) with r = t^2 + 2 k ln 2. Both products that nearly cancel are exact.
Exponential times_bell(LaneBuilder& b, Value factor, Value t) {
  const Sixteenths k = sixteenths_of(b, b.fma(b.mul(t, b.constant(-kLog2e / 2)), t, b.constant(kSixteenths)));
  const Value square_rest = b.fma(t, t, b.mul(k.number, b.constant(kDoubleLn2)));
  const Value r = b.fma(k.number, b.constant(kDoubleLn2Rest), square_rest);
  const Value whole = b.mul(factor, root_of(b, k));
  return {b.fma(whole, b.mul(r, polynomial(b, r, kBellRest)), whole), k.number, {}};
}

}  // namespace partita::jit
