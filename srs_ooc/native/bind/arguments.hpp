// What bindings take: arrays that are never converted, and checks of what they hold, each with one message.
#pragma once
#include "kernels.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace srs {

template <typename... Kind> using ArrayOf = nanobind::ndarray<Kind..., nanobind::c_contig, nanobind::device::cpu>;
template <typename T> using Vector = ArrayOf<T, nanobind::ndim<1>>;
template <typename T> using Matrix = ArrayOf<T, nanobind::ndim<2>>;
using AnyMatrix = ArrayOf<nanobind::ro, nanobind::ndim<2>>; // of a dtype that the function looks at
using AnyOutput = ArrayOf<nanobind::numpy, nanobind::ndim<2>>;

// ---- arrays of another kind: refused by name, by one helper ----------------------------------------

// An argument as it was given, and the array that it is; none where it is of another kind.
template <typename A> struct Given {
    A array;
    nanobind::handle source;
};

template <typename> struct ArrayKind : std::false_type {};
template <typename T, auto... Lengths> struct ArrayKind<ArrayOf<T, nanobind::shape<Lengths...>>> : std::true_type {
    static constexpr bool ANY = std::is_same_v<T, nanobind::ro> || std::is_same_v<T, nanobind::numpy>;
    using Item = std::conditional_t<std::is_same_v<T, nanobind::ro>, const char, std::conditional_t<ANY, char, T>>;
    static constexpr const char *DTYPE = ANY                             ? "an array"
                                         : std::is_same_v<T, bool>        ? "bool"
                                         : std::is_floating_point_v<Item> ? "float"
                                         : std::is_signed_v<Item>         ? "int"
                                                                          : "uint";
    static constexpr size_t BITS = ANY || std::is_same_v<T, bool> ? 0 : 8 * sizeof(Item); // 0: not said
    static constexpr size_t N_DIMENSIONS = sizeof...(Lengths);
};

// Refusals are compiled once, in arguments.cpp, not for each kind of array.
[[noreturn]] void refuse_array(const char *what, const char *dtype, size_t bits, size_t n_dimensions, bool writable,
                               nanobind::handle given);
[[noreturn]] void refuse(const std::string &what, const std::string &expected, const std::string &found);
[[noreturn]] void refuse_size(const char *what, int64_t expected, size_t found);
[[noreturn]] void refuse_room(const char *what, int64_t count, int64_t times, int64_t found);
[[noreturn]] void refuse_shape(const char *what, const int64_t (&expected)[2], const int64_t (&found)[2]);
[[noreturn]] void refuse_item(const char *what, size_t index, int64_t bound, const std::string &found);
[[noreturn]] void refuse_dtype(const char *what, const char *kind, size_t bits, size_t other_bits);

template <typename A> using Taken = std::conditional_t<ArrayKind<A>::value, Given<A>, A>;

template <typename A, size_t N>
void expect_array(const std::array<const char *, N> &names, size_t place, const Taken<A> &given) {
    if constexpr (ArrayKind<A>::value) {
        const bool is_aligned = given.array.is_valid() && (given.array.size() == 0 ||
            reinterpret_cast<uintptr_t>(given.array.data()) % alignof(typename ArrayKind<A>::Item) == 0);
        if (!is_aligned)
            refuse_array(names[place], ArrayKind<A>::DTYPE, ArrayKind<A>::BITS, ArrayKind<A>::N_DIMENSIONS,
                         !std::is_const_v<typename ArrayKind<A>::Item>, given.source);
    }
}

template <typename A> decltype(auto) as_array(Taken<A> &given) {
    if constexpr (ArrayKind<A>::value) return A(std::move(given.array));
    else return static_cast<A &&>(given);
}

// Bind a function whose last arguments have these names; what comes before them is a method's object.
template <typename Scope, typename R, typename... A, typename... Names>
void define(Scope &scope, const char *name, R (*function)(A...), const Names &...names) {
    const std::array<const char *, sizeof...(Names)> all{names.name_...};
    scope.def(name, [function, all](Taken<A>... given) -> R {
        size_t place = sizeof...(Names) - sizeof...(A); // of the object: no array is
        (expect_array<A>(all, place++, given), ...);
        return function(as_array<A>(given)...);
    }, names...);
}

// For define: a method as a function of its object, and a constructor as __init__.
template <auto METHOD> struct Method;
template <typename Class, typename R, typename... A, R (Class::*METHOD)(A...)> struct Method<METHOD> {
    static R call(Class &self, A... given) { return (self.*METHOD)(std::move(given)...); }
};
template <typename Class, typename... A> struct Constructor {
    static void call(Class *self, A... given) { new (self) Class(std::move(given)...); }
};

// Bind a struct of such fields, which is checked once, when it is made.
template <typename Class, typename... A, typename... Names>
nanobind::class_<Class> define_fields(nanobind::module_ &module, const char *name, const Names &...names) {
    nanobind::class_<Class> out(module, name);
    void (*make)(Class *, A...) = [](Class *self, A... given) {
        Class made{std::move(given)...};
        made.check();
        new (self) Class(std::move(made));
    };
    define(out, "__init__", make, names...);
    return out;
}

// ---- arrays that hold something else --------------------------------------------------------------

// A number, or item `index` of an array.
void expect_between(const char *what, int64_t found, int64_t least, int64_t most, int64_t index = -1);
void expect_finite(const char *what, double found); // a scale, or a unit

template <typename A> void expect_size(const char *what, const A &array, int64_t size) {
    if (static_cast<int64_t>(array.size()) != size) refuse_size(what, size, array.size());
}

template <typename A> void expect_size_or_none(const char *what, const A &array, int64_t size) {
    if (array.size() != 0) expect_size(what, array, size);
}

// So many items or more: a count times another may be more than 64 bits hold.
template <typename A> void expect_room(const char *what, const A &array, int64_t count, int64_t times) {
    const auto size = static_cast<int64_t>(array.size());
    if (count > 0 && times > 0 && size / times < count) refuse_room(what, count, times, size);
}

template <typename A> void expect_shape(const char *what, const A &array, int64_t first, int64_t second) {
    const auto own = static_cast<int64_t>(array.shape(0)), own_second = static_cast<int64_t>(array.shape(1));
    if (own != first || own_second != second) refuse_shape(what, {first, second}, {own, own_second});
}

// Items that are 0 .. bound - 1; looked at without a branch, so that many are looked at together.
template <typename A> void expect_below(const char *what, const A &items, int64_t bound) {
    using Item = std::remove_const_t<typename A::Scalar>;
    using Unsigned = std::make_unsigned_t<Item>;
    const uint64_t most = std::numeric_limits<Item>::max();
    if (bound > 0 && std::is_unsigned_v<Item> && static_cast<uint64_t>(bound) > most) return;
    const auto limit = static_cast<Unsigned>(bound < 0 ? 0 : std::min<uint64_t>(static_cast<uint64_t>(bound), most + 1));
    unsigned is_beyond = 0;
    for (size_t i = 0; i < items.size(); ++i) is_beyond |= static_cast<Unsigned>(items.data()[i]) >= limit;
    for (size_t i = 0; is_beyond && i < items.size(); ++i)
        if (static_cast<Unsigned>(items.data()[i]) >= limit) refuse_item(what, i, bound, std::to_string(items.data()[i]));
}

// Where parts of so many items begin, and where the last one ends.
template <typename A> void expect_bounds(const char *what, const A &bounds, int64_t size, int64_t least) {
    const size_t n = bounds.size();
    if (n < 1 || bounds.data()[0] != 0) refuse(what, "a first bound of 0", n ? std::to_string(bounds.data()[0]) : "none");
    expect_below(what, bounds, size + 1);
    for (size_t i = 1; i < n; ++i)
        expect_between(what, bounds.data()[i], bounds.data()[i - 1] + least, size, static_cast<int64_t>(i));
    if (bounds.data()[n - 1] != size)
        refuse(what, "a last bound of " + std::to_string(size), std::to_string(bounds.data()[n - 1]));
}

// Call work with an item of the dtype that an array has, one of two.
template <typename First, typename Second, typename A, typename Work>
auto with_dtype(const char *what, const A &array, const Work &work) {
    const auto is_of = [&](auto item) {
        return array.dtype() == nanobind::dtype<decltype(item)>() && reinterpret_cast<uintptr_t>(array.data()) % sizeof item == 0;
    };
    if (is_of(First())) return work(First());
    if (is_of(Second())) return work(Second());
    refuse_dtype(what, std::is_floating_point_v<First> ? "float" : "uint", 8 * sizeof(First), 8 * sizeof(Second));
}

// The same with one of as many bytes as codes have.
template <typename Work> auto with_code(int64_t code_nbytes, const Work &work) {
    return code_nbytes == 1 ? work(uint8_t()) : work(uint16_t());
}

template <typename Items> nanobind::bytes as_bytes(const Items &items) {
    return nanobind::bytes(reinterpret_cast<const char *>(items.data()), items.size() * sizeof items[0]);
}

// Columns that a block has room for: of a tiled one, whole tiles.
inline int64_t columns_with_padding(int64_t n_columns, bool tiled) {
    return tiled ? (n_columns + TILE - 1) / TILE * TILE : n_columns;
}

// A block of codes: its width, and room for its columns.
template <typename A>
void expect_block(const char *what, const A &codes, int64_t n_columns, int64_t n_rows, int64_t code_nbytes, bool tiled) {
    expect_between("code_nbytes", code_nbytes, 1, 2);
    expect_between("n_rows", n_rows, 1, std::numeric_limits<int32_t>::max());
    expect_between("n_columns", n_columns, 0, std::numeric_limits<uint32_t>::max());
    expect_room(what, codes, columns_with_padding(n_columns, tiled), n_rows * code_nbytes);
    if (reinterpret_cast<uintptr_t>(codes.data()) % static_cast<uintptr_t>(code_nbytes) != 0)
        refuse(what, "codes aligned to " + std::to_string(code_nbytes) + " bytes", "an odd address");
}

} // namespace srs

template <typename A> struct nanobind::detail::type_caster<srs::Given<A>> {
    NB_TYPE_CASTER(srs::Given<A>, make_caster<A>::Name)
    template <typename Flags> bool from_python(handle source, Flags, cleanup_list *) noexcept {
        value.source = source;
        nanobind::try_cast<A>(source, value.array, false); // no array where it is not: told once its name is known
        return true;
    }
};
