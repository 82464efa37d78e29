package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counts of the server as a process.
type metrics struct {
	connections *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	successful  prometheus.Gauge
	succeeded   prometheus.Gauge
	notAfter    prometheus.Gauge

	tlsReloads    *prometheus.CounterVec
	tlsSuccessful prometheus.Gauge
}

func newMetrics(to *prometheus.Registry) *metrics {
	m := &metrics{
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "firn_connections", Help: "Connections that are open, by listener.",
		}, []string{"listener"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_connections_refused_total", Help: "Connections above the limit, by listener.",
		}, []string{"listener"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_config_reloads_total", Help: "Configurations read again, by result: ok or failed.",
		}, []string{"result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_config_last_reload_successful", Help: "1 if the configuration in force is what the file says, 0 if that could not be served.",
		}),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_config_last_reload_success_timestamp_seconds", Help: "When the configuration in force was read.",
		}),
		tlsReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_tls_reloads_total", Help: "Certificates read again, by result: ok or failed.",
		}, []string{"result"}),
		tlsSuccessful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_tls_last_reload_successful", Help: "1 if the certificates in force are those of their files, 0 if those could not be used.",
		}),
		notAfter: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_tls_certificate_not_after_timestamp_seconds", Help: "When the server's certificate ends.",
		}),
	}
	for _, result := range []string{resultOK, resultFailed} {
		m.reloads.WithLabelValues(result)
		m.tlsReloads.WithLabelValues(result)
	}
	to.MustRegister(m.connections, m.refused, m.reloads, m.successful, m.succeeded)
	return m
}

// lostRecords counts the records of a log that whatever reads it did not take in time.
func lostRecords(of string, lost func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "firn_log_records_lost_total", Help: "Records of a log that were not written.", ConstLabels: prometheus.Labels{"log": of},
	}, func() float64 { return float64(lost()) })
}

const (
	resultOK     = "ok"
	resultFailed = "failed"
)
