// Refusals of arguments, and checks of single numbers.
#include "bind/arguments.hpp"

namespace srs {

// What was given for an array.
static std::string text_of(nanobind::handle given) {
    const auto text = [](nanobind::handle of) { return std::string(nanobind::str(of).c_str()); };
    if (!nanobind::hasattr(given, "dtype") || !nanobind::hasattr(given, "flags")) return text(given.type().attr("__name__"));
    const nanobind::object flags = given.attr("flags");
    const auto is = [&](const char *flag) { return nanobind::cast<bool>(flags.attr(flag)); };
    return text(given.attr("dtype")) + " of shape " + text(given.attr("shape")) + (is("c_contiguous") ? "" : ", not contiguous") +
           (is("writeable") ? "" : ", read-only") + (is("aligned") ? "" : ", not aligned");
}

void refuse_array(const char *what, const char *dtype, size_t bits, size_t n_dimensions, bool writable, nanobind::handle given) {
    const std::string kind = dtype + (bits ? std::to_string(bits) : ""), n = std::to_string(n_dimensions);
    throw nanobind::type_error((what + (": expected " + kind) + " in " + n + (n == "1" ? " dimension" : " dimensions") +
                                ", C-contiguous and aligned" + (writable ? ", writable" : "") + ", found " + text_of(given)).c_str());
}

void refuse(const std::string &what, const std::string &expected, const std::string &found) {
    throw std::invalid_argument(what + ": expected " + expected + ", found " + found);
}

void refuse_size(const char *what, int64_t expected, size_t found) {
    refuse(what, std::to_string(expected) + " items", std::to_string(found));
}

void refuse_room(const char *what, int64_t count, int64_t times, int64_t found) {
    refuse(what, std::to_string(count) + " times " + std::to_string(times) + " items", std::to_string(found));
}

void refuse_shape(const char *what, const int64_t (&expected)[2], const int64_t (&found)[2]) {
    const auto text = [](const int64_t (&n)[2]) { return "shape (" + std::to_string(n[0]) + ", " + std::to_string(n[1]) + ")"; };
    refuse(what, text(expected), text(found));
}

void refuse_item(const char *what, size_t index, int64_t bound, const std::string &found) {
    refuse(what + ("[" + std::to_string(index) + "]"), bound > 0 ? "0 to " + std::to_string(bound - 1) : "no items", found);
}

void refuse_dtype(const char *what, const char *kind, size_t bits, size_t other_bits) {
    throw nanobind::type_error((what + (": expected " + (kind + std::to_string(bits))) + " or " + kind + std::to_string(other_bits) +
                                ", aligned, found another dtype, or not aligned").c_str());
}

void expect_between(const char *what, int64_t found, int64_t least, int64_t most, int64_t index) {
    if (found < least || found > most)
        refuse(index < 0 ? what : what + ("[" + std::to_string(index) + "]"),
               least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most), std::to_string(found));
}

void expect_finite(const char *what, double found) {
    if (!(found >= 0 && found <= std::numeric_limits<double>::max())) refuse(what, "a number, 0 or more", std::to_string(found));
}

} // namespace srs
