// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// metricsNamespace is the prefix of all metrics of the operator.
const metricsNamespace = "conversion_operator"

// scrapeTimeout is ample for reading from the cache.
const scrapeTimeout = 5 * time.Second

// PolicyMetrics exports the statuses of policies to Prometheus. The values are computed at each
// scrape, so that nothing is left of a deleted policy. The label policy has as many values as
// there are policies.
type PolicyMetrics struct {
	// Policies reads policies from the cache.
	Policies client.Reader
	Log      logr.Logger
	// BuildVersion is the version of the manager.
	BuildVersion string
}

func policyMetric(name, help string, labels ...string) *prometheus.Desc {
	return metricOf("policy", name, help, labels...)
}

// metricOf describes a metric of the objects of a kind, whose name is a label.
func metricOf(kind, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, kind, name), help, append([]string{kind}, labels...), nil)
}

var (
	conditionMetric = policyMetric("status_condition",
		"Conditions of a policy: 1 for the status that one has, 0 for the two others.", "condition", "status")
	reasonMetric = policyMetric("ready_reason_info",
		"The reason of the condition Ready. Always 1.", "reason")
	infoMetric = policyMetric("info",
		"What converts, and in which version objects are stored. Always 1.", "converter", "storage_version")
	podsMetric = policyMetric("converter_pods",
		"Pods of a converter, or endpoints of one that users run, that are wanted, and that are ready and proven.", "state")
	certificateMetric = policyMetric("certificate_expiry_timestamp_seconds",
		"When the serving certificate of the converter expires, in seconds of Unix time.")
	authorityMetric = policyMetric("ca_expiry_timestamp_seconds",
		"When the first of the trusted certificate authorities expires, in seconds of Unix time.")
	storedMetric = policyMetric("stored_versions",
		"Versions in which objects may be stored, as status.storedVersions of the CustomResourceDefinition says.")
	driftMetric = policyMetric("drift_timestamp_seconds",
		"When another client last changed the conversion of the CustomResourceDefinition, in seconds of Unix time.")
)

var buildMetric = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "build_info"),
	"The manager that is running. Always 1.", []string{"version", "goversion"}, nil)

// Describe implements prometheus.Collector.
func (PolicyMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, some := range [][]*prometheus.Desc{
		{buildMetric, conditionMetric, reasonMetric, infoMetric, podsMetric, certificateMetric, authorityMetric, storedMetric, driftMetric},
		migrationMetrics, versionMetrics,
	} {
		for _, description := range some {
			descriptions <- description
		}
	}
}

// Collect implements prometheus.Collector.
func (m PolicyMetrics) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.MustNewConstMetric(buildMetric, prometheus.GaugeValue, 1, m.BuildVersion, runtime.Version())
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	policies := &v1alpha1.ConversionPolicyList{}
	if err := m.Policies.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		m.Log.Error(err, "Policies are missing from the metrics")
		return
	}
	for i := range policies.Items {
		collectPolicy(&policies.Items[i], gaugesOf(policies.Items[i].Name, metrics))
	}
}

// setGauge exports one value of a policy or a fleet.
type setGauge func(_ *prometheus.Desc, value float64, labels ...string)

// gaugesOf exports the values of the object of that name.
func gaugesOf(name string, metrics chan<- prometheus.Metric) setGauge {
	return func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
	}
}

// collectPolicy exports the known values of one policy.
func collectPolicy(policy *v1alpha1.ConversionPolicy, set setGauge) {
	status := &policy.Status
	collectConditions(conditionMetric, status.Conditions, set)
	if ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		set(reasonMetric, 1, ready.Reason)
	}
	storage := ""
	if crd := status.CRD; crd != nil {
		storage = crd.StorageVersion
		set(storedMetric, float64(len(crd.StoredVersions)))
	}
	set(infoMetric, 1, string(policy.Spec.Converter.Type), storage)
	if pods := status.Webhook; pods != nil {
		set(podsMetric, float64(pods.Desired), "desired")
		set(podsMetric, float64(pods.Ready), "ready")
	}
	if certificate := status.Certificate; certificate != nil {
		set(certificateMetric, float64(certificate.NotAfter.Unix()))
		set(authorityMetric, float64(certificate.CANotAfter.Unix()))
	}
	if drift := status.Drift; drift != nil && drift.Answer != v1alpha1.DriftKept {
		set(driftMetric, float64(drift.LastTime.Unix()))
	}
	if last := status.Migration; last != nil {
		collectMigration(last, set)
	}
	if counted := status.PreservedData; counted != nil {
		collectPreserved(counted, status.Revision, set)
	}
	collectOversized(policy, set)
	collectVersions(policy, set)
}

func collectConditions(metric *prometheus.Desc, conditions []metav1.Condition, set setGauge) {
	for _, condition := range conditions {
		for _, value := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			set(metric, asFloat(condition.Status == value), condition.Type, string(value))
		}
	}
}

func asFloat(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
