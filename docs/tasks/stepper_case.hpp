// Writes a call of an ov::InferRequest as a case of stepper: model.xml, inputs.npz, states.npz and outputs.npz in a
// folder. C++17 and OpenVINO, nothing else; little-endian machines. See it-fails-in-cpp.md.
//
//     stepper::Call call(request);   // once, behind create_infer_request()
//     call.before();                 // before each infer() or start_async(): copies inputs and variables
//     request.infer();
//     if (call.has_nan()) call.write("kept/case-137", model);

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "openvino/core/graph_util.hpp"
#include "openvino/runtime/compiled_model.hpp"
#include "openvino/runtime/infer_request.hpp"

namespace stepper {

/// A copy of a tensor, by the name that it has in the archive.
using Named = std::pair<std::string, ov::Tensor>;

namespace detail {

/// A copy that nobody else writes into, without gaps; bf16 becomes f32, which .npy knows.
inline ov::Tensor copy_of(const ov::Tensor& tensor) {
    ov::Tensor copy(tensor.get_element_type(), tensor.get_shape());
    if (tensor.get_size() != 0)
        tensor.copy_to(copy);
    if (tensor.get_element_type() != ov::element::bf16)
        return copy;
    ov::Tensor wide(ov::element::f32, tensor.get_shape());
    const auto* from = static_cast<const std::uint16_t*>(static_cast<const void*>(copy.data()));
    auto* to = static_cast<char*>(static_cast<void*>(wide.data()));
    for (std::size_t index = 0; index < copy.get_size(); ++index) {
        const std::uint32_t bits = static_cast<std::uint32_t>(from[index]) << 16;
        std::memcpy(to + 4 * index, &bits, 4);
    }
    return wide;
}

inline bool are_same(const ov::Tensor& one, const ov::Tensor& other) {
    return one.get_element_type() == other.get_element_type() && one.get_shape() == other.get_shape() &&
           (one.get_size() == 0 || std::memcmp(one.data(), other.data(), one.get_byte_size()) == 0);
}

/// numpy's name of an element type. std::runtime_error for one that .npy does not have.
inline std::string numpy_type(const std::string& name, const ov::element::Type& type) {
    static const std::pair<ov::element::Type_t, const char*> known[] = {
        {ov::element::f16, "<f2"}, {ov::element::f32, "<f4"}, {ov::element::f64, "<f8"}, {ov::element::i8, "|i1"},
        {ov::element::i16, "<i2"}, {ov::element::i32, "<i4"}, {ov::element::i64, "<i8"}, {ov::element::u8, "|u1"},
        {ov::element::u16, "<u2"}, {ov::element::u32, "<u4"}, {ov::element::u64, "<u8"}, {ov::element::boolean, "|b1"}};
    for (const auto& [one, text] : known)
        if (type == one)
            return text;
    throw std::runtime_error("'" + name + "' is " + type.get_type_name() + ", which cannot be written as .npy");
}

/// The beginning of a .npy file: type and shape, padded so that the numbers begin at a multiple of 64 bytes.
inline std::string npy_header(const std::string& type, const ov::Shape& shape) {
    std::string sizes;
    for (const auto size : shape)
        sizes += std::to_string(size) + ",";
    std::string text = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
    text.append(63 - (10 + text.size()) % 64, ' ').push_back('\n');
    std::string header("\x93NUMPY\x01\x00", 8);
    header.push_back(static_cast<char>(text.size() & 0xff));
    header.push_back(static_cast<char>(text.size() >> 8));
    return header + text;
}

inline std::uint32_t crc32(std::uint32_t crc, const char* bytes, std::size_t count) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> made{};
        for (std::uint32_t index = 0; index < 256; ++index) {
            std::uint32_t value = index;
            for (int bit = 0; bit < 8; ++bit)
                value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0u);
            made[index] = value;
        }
        return made;
    }();
    crc = ~crc;
    for (std::size_t index = 0; index < count; ++index)
        crc = table[(crc ^ static_cast<unsigned char>(bytes[index])) & 0xff] ^ (crc >> 8);
    return ~crc;
}

inline void put(std::string& text, std::uint64_t number, int bytes) {
    for (int index = 0; index < bytes; ++index)
        text.push_back(static_cast<char>(number >> (8 * index) & 0xff));
}

/// Writes an .npz: a zip whose members are stored as they are.
inline void write_npz(const std::filesystem::path& path, const std::vector<Named>& arrays) {
    constexpr std::uint64_t most = 0xffffffff;  // beyond this a zip has other records
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    std::string directory;
    std::uint64_t offset = 0;
    for (const auto& [name, tensor] : arrays) {
        const std::string header = npy_header(numpy_type(name, tensor.get_element_type()), tensor.get_shape());
        const std::string member = name + ".npy";
        const auto* bytes = static_cast<const char*>(static_cast<const void*>(tensor.data()));
        const std::size_t count = tensor.get_byte_size();
        const std::uint64_t size = header.size() + count;
        if (offset + size > most - 65536 || member.size() > 65535)
            throw std::runtime_error(path.string() + ": more than 4 GB do not fit into one archive");
        const std::uint32_t crc = crc32(crc32(0, header.data(), header.size()), bytes, count);
        std::string facts;       // what stands before the member and once more in the directory:
        put(facts, 20, 2);       // version that is needed
        put(facts, 0x800, 2);    // names are UTF-8
        put(facts, 0, 2);        // stored
        put(facts, 0, 2);        // time
        put(facts, 0x21, 2);     // 1 January 1980
        put(facts, crc, 4);
        put(facts, size, 4);
        put(facts, size, 4);
        put(facts, member.size(), 2);
        put(facts, 0, 2);        // nothing extra
        const std::string local = std::string("PK\x03\x04", 4) + facts + member;
        file << local << header;
        file.write(bytes, static_cast<std::streamsize>(count));
        directory += std::string("PK\x01\x02", 4);
        put(directory, 20, 2);
        directory += facts;
        put(directory, 0, 2);    // comment
        put(directory, 0, 2);    // disk
        put(directory, 0, 2);    // attributes
        put(directory, 0, 4);
        put(directory, offset, 4);
        directory += member;
        offset += local.size() + size;
    }
    std::string end("PK\x05\x06", 4);
    put(end, 0, 4);
    put(end, arrays.size(), 2);
    put(end, arrays.size(), 2);
    put(end, directory.size(), 4);
    put(end, offset, 4);
    put(end, 0, 2);
    file << directory << end;
    file.flush();
    if (!file)
        throw std::runtime_error(path.string() + ": cannot be written");
}

/// Each input by its name; one without a name, or with one that another has, by its position.
inline std::string name_of(const std::vector<ov::Output<const ov::Node>>& ports, std::size_t index) {
    if (ports[index].get_names().empty())
        return std::to_string(index);
    const std::string name = ports[index].get_any_name();
    for (std::size_t before = 0; before < index; ++before)
        if (!ports[before].get_names().empty() && ports[before].get_any_name() == name)
            return std::to_string(index);
    return name;
}

template <class Number>
bool has_nan(const ov::Tensor& tensor) {
    const auto* numbers = tensor.data<const Number>();
    for (std::size_t index = 0; index < tensor.get_size(); ++index)
        if (std::isnan(static_cast<double>(numbers[index])))
            return true;
    return false;
}

}  // namespace detail

/// The calls of one infer request; a case is written of the last. Use it from the thread that uses the request.
class Call {
public:
    /// Remembers the variables of the request; it must not have been called yet.
    explicit Call(ov::InferRequest request) : request_(std::move(request)), fresh_(states()) {}

    /// Copies inputs and variables: when all inputs are set, before infer() or start_async().
    void before() {
        const auto ports = request_.get_compiled_model().inputs();
        inputs_.clear();
        for (std::size_t index = 0; index < ports.size(); ++index)
            inputs_.emplace_back(detail::name_of(ports, index), detail::copy_of(request_.get_input_tensor(index)));
        states_ = states();
    }

    /// True if an output has a NaN: behind infer() or wait().
    bool has_nan() {
        for (const auto& [name, tensor] : outputs()) {
            const auto type = tensor.get_element_type();
            if ((type == ov::element::f32 && detail::has_nan<float>(tensor)) ||
                (type == ov::element::f64 && detail::has_nan<double>(tensor)) ||
                (type == ov::element::f16 && detail::has_nan<ov::float16>(tensor)))
                return true;
        }
        return false;
    }

    /// Writes inputs.npz, states.npz and outputs.npz into a folder, and model.xml and model.bin, if a model is given:
    /// the one that was compiled. Else copy them there. std::runtime_error, or what std::filesystem throws.
    void write(const std::filesystem::path& folder, const std::shared_ptr<const ov::Model>& model = nullptr) {
        std::filesystem::create_directories(folder);
        detail::write_npz(folder / "inputs.npz", inputs_);
        std::vector<Named> changed;  // with what others begin, the model says
        for (std::size_t index = 0; index < states_.size(); ++index)
            if (!detail::are_same(states_[index].second, fresh_.at(index).second))
                changed.push_back(states_[index]);
        if (!changed.empty())
            detail::write_npz(folder / "states.npz", changed);
        detail::write_npz(folder / "outputs.npz", outputs());
        if (model)
            ov::serialize(model, (folder / "model.xml").string(), (folder / "model.bin").string());
    }

private:
    std::vector<Named> states() {
        std::vector<Named> found;
        for (auto& state : request_.query_state())
            found.emplace_back(state.get_name(), detail::copy_of(state.get_state()));
        return found;
    }

    std::vector<Named> outputs() {
        std::vector<Named> found;
        const std::size_t count = request_.get_compiled_model().outputs().size();
        for (std::size_t index = 0; index < count; ++index)
            found.emplace_back("out_" + std::to_string(index), detail::copy_of(request_.get_output_tensor(index)));
        return found;
    }

    ov::InferRequest request_;
    std::vector<Named> fresh_, inputs_, states_;
};

}  // namespace stepper
