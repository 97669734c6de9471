/// @file
/// thrust's vectors and pointers for programs on the interpreter, and copy, fill, sequence and sort: what tutorials need to get
/// numbers to the GPU and back. The host does it. Its other algorithms are refused.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <new>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace thrust {

template <class T>
class device_ptr;

/// An element of the GPU's memory: each access is a copy.
template <class T>
class device_reference {
 public:
  explicit device_reference(T* address) : address_(address) {}
  operator T() const {
    T value;
    cudaMemcpy(&value, address_, sizeof value, cudaMemcpyDeviceToHost);
    return value;
  }
  const device_reference& operator=(const T& value) const {
    cudaMemcpy(address_, &value, sizeof value, cudaMemcpyHostToDevice);
    return *this;
  }
  const device_reference& operator=(const device_reference& other) const { return *this = static_cast<T>(other); }
  device_ptr<T> operator&() const { return device_ptr<T>(address_); }

 private:
  T* address_;
};

template <class T>
class device_ptr {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_const_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr;
  using reference = device_reference<T>;

  device_ptr() = default;
  explicit device_ptr(T* address) : address_(address) {}
  T* get() const { return address_; }
  reference operator*() const { return reference(address_); }
  reference operator[](difference_type i) const { return reference(address_ + i); }
  device_ptr operator+(difference_type n) const { return device_ptr(address_ + n); }
  device_ptr operator-(difference_type n) const { return device_ptr(address_ - n); }
  difference_type operator-(device_ptr other) const { return address_ - other.address_; }
  device_ptr& operator+=(difference_type n) { return address_ += n, *this; }
  device_ptr& operator++() { return ++address_, *this; }
  bool operator==(const device_ptr&) const = default;

 private:
  T* address_ = nullptr;
};

template <class T>
T* raw_pointer_cast(device_ptr<T> p) {
  return p.get();
}
template <class T>
T* raw_pointer_cast(T* p) {
  return p;
}
template <class T>
device_ptr<T> device_pointer_cast(T* p) {
  return device_ptr<T>(p);
}

/// @name Between host and GPU, and on each of them
/// @return behind the last element that was written
/// @{
template <class From, class T>
device_ptr<T> copy(From first, From last, device_ptr<T> to) {
  const std::vector<T> values(first, last);
  cudaMemcpy(to.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return to + static_cast<std::ptrdiff_t>(values.size());
}
template <class T, class To>
To copy(device_ptr<T> first, device_ptr<T> last, To to) {
  std::vector<std::remove_const_t<T>> values(static_cast<std::size_t>(last - first));
  cudaMemcpy(values.data(), first.get(), values.size() * sizeof(T), cudaMemcpyDeviceToHost);
  for (const T& value : values) *to++ = value;
  return to;
}
template <class T, class U>
device_ptr<U> copy(device_ptr<T> first, device_ptr<T> last, device_ptr<U> to) {
  static_assert(std::is_same_v<std::remove_const_t<T>, U>, "the interpreter's thrust::copy converts nothing on the GPU");
  cudaMemcpy(to.get(), first.get(), static_cast<std::size_t>(last - first) * sizeof(T), cudaMemcpyDeviceToDevice);
  return to + (last - first);
}
template <class From, class To>
requires(!std::is_convertible_v<To, device_ptr<typename std::iterator_traits<To>::value_type>>) To
    copy(From first, From last, To to) {
  return std::copy(first, last, to);
}
template <class T>
void fill(device_ptr<T> first, device_ptr<T> last, const T& value) {
  const std::vector<T> values(static_cast<std::size_t>(last - first), value);
  cudaMemcpy(first.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
}
/// @}

/// @name Sorting, by the host; equal keys keep their order
/// @{
template <class Iterator>
void sequence(Iterator first, Iterator last) {
  std::vector<typename std::iterator_traits<Iterator>::value_type> values(static_cast<std::size_t>(last - first));
  std::iota(values.begin(), values.end(), 0);
  thrust::copy(values.begin(), values.end(), first);
}
template <class Iterator, class Less = std::less<>>
void sort(Iterator first, Iterator last, Less less = {}) {
  std::vector<typename std::iterator_traits<Iterator>::value_type> values(static_cast<std::size_t>(last - first));
  thrust::copy(first, last, values.begin());
  std::stable_sort(values.begin(), values.end(), less);
  thrust::copy(values.begin(), values.end(), first);
}
template <class Iterator, class Values, class Less = std::less<>>
void sort_by_key(Iterator first, Iterator last, Values of_keys, Less less = {}) {
  const auto count = last - first;
  std::vector<std::pair<typename std::iterator_traits<Iterator>::value_type, typename std::iterator_traits<Values>::value_type>>
      pairs(static_cast<std::size_t>(count));
  std::vector<typename std::iterator_traits<Iterator>::value_type> keys(pairs.size());
  std::vector<typename std::iterator_traits<Values>::value_type> values(pairs.size());
  thrust::copy(first, last, keys.begin());
  thrust::copy(of_keys, of_keys + count, values.begin());
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {keys[i], values[i]};
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return less(a.first, b.first); });
  for (std::size_t i = 0; i < pairs.size(); ++i) keys[i] = pairs[i].first, values[i] = pairs[i].second;
  thrust::copy(keys.begin(), keys.end(), first);
  thrust::copy(values.begin(), values.end(), of_keys);
}
template <class Iterator>
bool is_sorted(Iterator first, Iterator last) {
  std::vector<typename std::iterator_traits<Iterator>::value_type> values(static_cast<std::size_t>(last - first));
  thrust::copy(first, last, values.begin());
  return std::is_sorted(values.begin(), values.end());
}
/// @}

using default_random_engine = std::minstd_rand;
using std::uniform_int_distribution;
using std::uniform_real_distribution;

template <class T>
class device_vector;

template <class T>
class host_vector {
 public:
  using value_type = T;

  host_vector() = default;
  explicit host_vector(std::size_t n, const T& value = T()) : values_(n, value) {}
  host_vector(std::initializer_list<T> values) : values_(values) {}
  host_vector(const std::vector<T>& values) : values_(values) {}
  template <std::input_iterator Iterator>
  host_vector(Iterator first, Iterator last) : values_(first, last) {}
  host_vector(const device_vector<T>& v) : values_(v.size()) {
    cudaMemcpy(values_.data(), v.data().get(), v.size() * sizeof(T), cudaMemcpyDeviceToHost);
  }
  T& operator[](std::size_t i) { return values_[i]; }
  const T& operator[](std::size_t i) const { return values_[i]; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  void resize(std::size_t n, const T& value = T()) { values_.resize(n, value); }
  void push_back(const T& value) { values_.push_back(value); }
  auto begin() { return values_.begin(); }
  auto begin() const { return values_.begin(); }
  auto end() { return values_.end(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<T> values_;
};

template <class T>
class device_vector {
 public:
  using value_type = T;

  device_vector() = default;
  explicit device_vector(std::size_t n, const T& value = T()) : device_vector(std::vector<T>(n, value)) {}
  device_vector(std::initializer_list<T> values) : device_vector(std::vector<T>(values)) {}
  device_vector(const std::vector<T>& values) : device_vector(values.data(), values.size(), cudaMemcpyHostToDevice) {}
  device_vector(const host_vector<T>& v) : device_vector(v.data(), v.size(), cudaMemcpyHostToDevice) {}
  device_vector(const device_vector& v) : device_vector(v.data().get(), v.size(), cudaMemcpyDeviceToDevice) {}
  device_vector(device_vector&& other) noexcept { swap(other); }
  device_vector& operator=(device_vector other) noexcept {
    swap(other);
    return *this;
  }
  ~device_vector() { cudaFree(address_); }

  void swap(device_vector& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
  }
  device_reference<T> operator[](std::size_t i) { return device_reference<T>(address_ + i); }
  T operator[](std::size_t i) const { return device_reference<T>(address_ + i); }
  device_ptr<T> data() { return device_ptr<T>(address_); }
  device_ptr<const T> data() const { return device_ptr<const T>(address_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void resize(std::size_t n, const T& value = T()) {
    host_vector<T> values(*this);
    values.resize(n, value);
    *this = device_vector(values);
  }
  device_ptr<T> begin() { return data(); }
  device_ptr<const T> begin() const { return data(); }
  device_ptr<T> end() { return data() + static_cast<std::ptrdiff_t>(size_); }
  device_ptr<const T> end() const { return data() + static_cast<std::ptrdiff_t>(size_); }

 private:
  device_vector(const T* from, std::size_t n, cudaMemcpyKind kind) : size_(n) {
    if (n == 0) return;
    if (cudaMalloc(reinterpret_cast<void**>(&address_), n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    cudaMemcpy(address_, from, n * sizeof(T), kind);
  }
  T* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace thrust
