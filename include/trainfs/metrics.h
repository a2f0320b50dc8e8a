// What a daemon tells Prometheus: an HTTP endpoint, /metrics, whose page is filled when it is asked
// for. Threads of its own; whoever fills the page may not wait for anything.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "trainfs/counters.h"

namespace trainfs {

// Names follow Prometheus: trainfs_..., units as a suffix, _total behind what only grows.
class MetricsPage {
 public:
  MetricsPage();
  ~MetricsPage();

  using Labels = std::map<std::string, std::string>;
  void counter(const std::string& name, const std::string& help, const Labels& labels,
               uint64_t value);
  void gauge(const std::string& name, const std::string& help, const Labels& labels, double value);
  void histogram(const std::string& name, const std::string& help, const Labels& labels,
                 const LatencyHistogram& values);
  // Of other counters: how many there were up to each of LatencyHistogram's bounds that were longer
  // than the one before; the last, longer than all.
  using Buckets = std::array<uint64_t, LatencyHistogram::kBounds + 1>;
  void histogram(const std::string& name, const std::string& help, const Labels& labels,
                 const Buckets& buckets, std::chrono::nanoseconds sum);

 private:
  friend class MetricsEndpoint;
  struct Families;
  std::unique_ptr<Families> families_;
};

class MetricsEndpoint {
 public:
  // `at`: HOST:PORT. Throws std::runtime_error if it cannot listen there. `fill` runs on threads of
  // this, until the destructor returns.
  MetricsEndpoint(const std::string& at, std::function<void(MetricsPage&)> fill);
  ~MetricsEndpoint();

  uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a daemon does with its option: nothing if it is empty.
std::unique_ptr<MetricsEndpoint> serveMetrics(const std::string& at,
                                              std::function<void(MetricsPage&)> fill);

// For options: what is wrong with an address, or an empty string. Empty: no endpoint.
std::string checkMetricsAddress(const std::string& at);

}  // namespace trainfs
