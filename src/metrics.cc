#include "trainfs/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <stdexcept>
#include <utility>

#include "trainfs/host_port.h"
#include "trainfs/logging.h"

namespace trainfs {

namespace {

// A connection occupies a thread until its request is there, and those that wait are taken in their
// order. So a scrape waits for the connections before it, and those are bounded: 129 of them hold
// 16 threads for 8 s if all of them are silent, and Prometheus waits for 10. (The kernel makes
// further ones try again.)
const std::vector<std::string> kCivetwebLimits = {
    "num_threads",        "16",    //
    "connection_queue",   "16",    // accepted ones; further ones wait in the backlog
    "listen_backlog",     "96",    //
    "request_timeout_ms", "1000",  // for all of a request, and for each standstill of the reply
    "enable_keep_alive",  "no",    // one request for each connection
};

prometheus::ClientMetric labelled(const MetricsPage::Labels& labels) {
  prometheus::ClientMetric metric;
  for (auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

class Page final : public prometheus::Collectable {
 public:
  explicit Page(std::function<std::vector<prometheus::MetricFamily>()> collect)
      : collect_(std::move(collect)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return collect_(); }

 private:
  std::function<std::vector<prometheus::MetricFamily>()> collect_;
};

// As civetweb has it, which does not know "*".
std::string listenText(const std::string& at) {
  HostPort place;
  parseHostPort(at, 0, place);
  return place.host == "*" ? "+" + std::to_string(place.port) : hostPortText(place);
}

std::vector<std::string> civetwebOptions(const std::string& at) {
  std::vector<std::string> options = {"listening_ports", listenText(at)};
  options.insert(options.end(), kCivetwebLimits.begin(), kCivetwebLimits.end());
  return options;
}

}  // namespace

struct MetricsPage::Families {
  std::map<std::string, prometheus::MetricFamily> byName;

  std::vector<prometheus::ClientMetric>& of(const std::string& name, const std::string& help,
                                            prometheus::MetricType type) {
    auto& family = byName[name];
    if (family.metric.empty()) family = {name, help, type, {}};
    return family.metric;
  }
};

MetricsPage::MetricsPage() : families_(std::make_unique<Families>()) {}
MetricsPage::~MetricsPage() = default;

void MetricsPage::counter(const std::string& name, const std::string& help, const Labels& labels,
                          uint64_t value) {
  auto metric = labelled(labels);
  metric.counter.value = static_cast<double>(value);
  families_->of(name, help, prometheus::MetricType::Counter).push_back(std::move(metric));
}

void MetricsPage::gauge(const std::string& name, const std::string& help, const Labels& labels,
                        double value) {
  auto metric = labelled(labels);
  metric.gauge.value = value;
  families_->of(name, help, prometheus::MetricType::Gauge).push_back(std::move(metric));
}

void MetricsPage::histogram(const std::string& name, const std::string& help, const Labels& labels,
                            const LatencyHistogram& values) {
  Buckets buckets;
  for (size_t i = 0; i < buckets.size(); ++i) buckets[i] = values.bucket(i);
  histogram(name, help, labels, buckets, values.sum());
}

void MetricsPage::histogram(const std::string& name, const std::string& help, const Labels& labels,
                            const Buckets& buckets, std::chrono::nanoseconds sum) {
  using Seconds = std::chrono::duration<double>;
  auto metric = labelled(labels);
  auto& histogram = metric.histogram;
  for (size_t i = 0; i <= LatencyHistogram::kBounds; ++i) {
    histogram.sample_count += buckets[i];
    double bound = i == LatencyHistogram::kBounds ? std::numeric_limits<double>::infinity()
                                                  : Seconds(LatencyHistogram::bound(i)).count();
    histogram.bucket.push_back({.cumulative_count = histogram.sample_count, .upper_bound = bound});
  }
  histogram.sample_sum = Seconds(sum).count();
  families_->of(name, help, prometheus::MetricType::Histogram).push_back(std::move(metric));
}

struct MetricsEndpoint::Impl {
  std::shared_ptr<Page> page;
  prometheus::Exposer exposer;
};

MetricsEndpoint::MetricsEndpoint(const std::string& at, std::function<void(MetricsPage&)> fill) {
  auto collect = [fill = std::move(fill)] {
    MetricsPage page;
    fill(page);
    std::vector<prometheus::MetricFamily> families;
    for (auto& [name, family] : page.families_->byName) families.push_back(std::move(family));
    return families;
  };
  try {
    impl_.reset(new Impl{std::make_shared<Page>(std::move(collect)),
                         prometheus::Exposer(civetwebOptions(at))});
  } catch (const std::exception& error) {
    throw std::runtime_error("metrics: cannot listen on " + at + ": " + error.what());
  }
  impl_->exposer.RegisterCollectable(impl_->page);
}

MetricsEndpoint::~MetricsEndpoint() = default;

uint16_t MetricsEndpoint::port() const {
  return static_cast<uint16_t>(impl_->exposer.GetListeningPorts().front());
}

std::unique_ptr<MetricsEndpoint> serveMetrics(const std::string& at,
                                              std::function<void(MetricsPage&)> fill) {
  if (at.empty()) return nullptr;
  auto endpoint = std::make_unique<MetricsEndpoint>(at, std::move(fill));
  spdlog::info("metrics are at port {}", endpoint->port());
  return endpoint;
}

std::string checkMetricsAddress(const std::string& at) {
  HostPort place;
  bool whole = at.empty() || (parseHostPort(at, 0, place) && at.rfind(':') != at.npos &&
                              at.back() != ']' && at != place.host);
  return whole ? "" : "must be HOST:PORT";
}

}  // namespace trainfs
