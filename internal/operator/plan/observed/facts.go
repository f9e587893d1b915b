// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"net/url"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// StorageMigrating is set on a CustomResourceDefinition by Kubernetes' own
// StorageVersionMigration. It prunes status.storedVersions only while the generation
// stays the same.
const StorageMigrating apiextensionsv1.CustomResourceDefinitionConditionType = "StorageMigrating"

// CAKey is the key of the trusted authorities in a Secret, as cert-manager has it.
const CAKey = "ca.crt"

// None reports that the policy wants no converter.
func (c Cluster) None() bool { return c.Policy.Spec.Converter.Type == v1alpha1.ConverterNone }

// Rulesets reports that the policy has rules, which the operator compiles and serves.
func (c Cluster) Rulesets() bool {
	return c.Policy.Spec.Converter.Type == v1alpha1.ConverterDeclarative
}

// Deploys reports that the operator runs the converter of the policy.
func (c Cluster) Deploys() bool {
	of := c.Policy.Spec.Converter.Type
	return of == v1alpha1.ConverterDeclarative || of == v1alpha1.ConverterImage
}

// Unconverted reports that the CustomResourceDefinition has no conversion.
func (c Cluster) Unconverted() bool { return crds.Strategy(c.CRD) == apiextensionsv1.NoneConverter }

// IsDeleted reports that the policy is being deleted.
func (c Cluster) IsDeleted() bool { return !c.Policy.DeletionTimestamp.IsZero() }

// PointsHere reports that the CustomResourceDefinition converts through the policy's Service, or
// through that of a fleet.
func (c Cluster) PointsHere() bool {
	service := c.ownService()
	return names.FleetOf(service) != "" || service == names.Child(c.Policy.Name)
}

// NamedFleet is the fleet that the CustomResourceDefinition converts through; empty if it is none.
func (c Cluster) NamedFleet() string { return names.FleetOf(c.ownService()) }

// ownService is the name of the Service that the CustomResourceDefinition converts through, if it is
// in the namespace of the operator; otherwise empty.
func (c Cluster) ownService() string {
	if c.CRD == nil {
		return ""
	}
	service := WebhookService(c.CRD)
	if service == nil || service.Namespace != c.Settings.Namespace {
		return ""
	}
	return service.Name
}

// FleetOf is the name of the fleet that a policy asks for; empty if it has pods of its own, or if
// its converter is none that the operator runs.
func FleetOf(policy *v1alpha1.ConversionPolicy) string {
	workload := ptr.Deref(policy.Spec.Workload, v1alpha1.Workload{Type: v1alpha1.WorkloadFleet})
	if policy.Spec.Converter.Type != v1alpha1.ConverterDeclarative || workload.Type != v1alpha1.WorkloadFleet {
		return ""
	}
	return string(ptr.Deref(workload.Fleet, v1alpha1.FleetWorkload{Name: v1alpha1.DefaultFleet}).Name)
}

// FleetsOf are the names of the fleets that a policy uses, and of those that API servers may still
// call for it, sorted.
func FleetsOf(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) []string {
	var fleets []string
	if fleet := FleetOf(policy); fleet != "" {
		fleets = append(fleets, fleet)
	}
	if crd != nil {
		if service := WebhookService(crd); service != nil {
			if fleet := names.FleetOf(service.Name); fleet != "" {
				fleets = append(fleets, fleet)
			}
		}
	}
	for _, active := range policy.Status.ActiveRevisions {
		if fleet := names.RevisionOf(active.Revision).Fleet; fleet != "" {
			fleets = append(fleets, fleet)
		}
	}
	slices.Sort(fleets)
	return slices.Compact(fleets)
}

// FleetNamed is one of the observed fleets; the zero value if it was not observed.
func (c Cluster) FleetNamed(name string) Fleet {
	for _, fleet := range c.Fleets {
		if fleet.Name == name {
			return fleet
		}
	}
	return Fleet{Name: name}
}

// PodsOf are the converter pods of a fleet, or those of the policy alone if fleet is empty.
func (c Cluster) PodsOf(fleet string) []Pod {
	return slices.DeleteFunc(slices.Clone(c.Pods), func(pod Pod) bool { return pod.Fleet != fleet })
}

// EndingOf are the pods of a fleet, or of the policy alone, that are being deleted and may still answer.
func (c Cluster) EndingOf(fleet string) []EndingPod {
	return slices.DeleteFunc(StillEnding(c.Ending, c.Now), func(pod EndingPod) bool { return pod.Fleet != fleet })
}

// StillEnding are the pods whose grace period has not ended. A pod on a lost node remains after that, until
// the node is back or is removed, and nothing may wait for it.
func StillEnding(pods []EndingPod, now time.Time) []EndingPod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod EndingPod) bool { return !pod.Until.After(now) })
}

// WebhookService returns the Service that a CustomResourceDefinition converts through, or nil.
func WebhookService(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.ServiceReference {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig.Service
}

// WebhookOf names, for messages, the webhook that a CustomResourceDefinition converts through.
func WebhookOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if service := WebhookService(crd); service != nil {
		return "the Service " + service.Namespace + "/" + service.Name
	}
	if conversion := crd.Spec.Conversion; conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.URL != nil {
		return *conversion.Webhook.ClientConfig.URL
	}
	return "another webhook"
}

// CABundle has the authorities that the CustomResourceDefinition must trust so that API
// servers can verify every converter pod, also during a rotation. It comes from the Secret
// that pods mount, or from another client that injects it. It is empty if there is none yet.
func (c Cluster) CABundle() []byte {
	if active := c.ActiveCABundle(); c.Injected() && len(active) > 0 {
		return active
	}
	if c.Certificate == nil {
		return nil
	}
	return c.Certificate.Data[CAKey]
}

// ActiveCABundle is caBundle of the CustomResourceDefinition, no matter which client wrote it.
func (c Cluster) ActiveCABundle() []byte {
	if c.CRD == nil || c.CRD.Spec.Conversion == nil || c.CRD.Spec.Conversion.Webhook == nil || c.CRD.Spec.Conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return c.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// Injected reports that another client writes caBundle.
func (c Cluster) Injected() bool {
	return c.Policy.Spec.Certificates.Type == v1alpha1.CertificatesInjected
}

// Forgetting returns the cluster without what the status of the policy says of a CustomResourceDefinition
// that was deleted, and of repairs for an earlier spec of the policy. Nothing may follow from that. The
// status that the plan has is written as a whole, with the uid of the current definition, so that an
// interrupted reconciliation is repeated from the former one.
func Forgetting(c Cluster) Cluster {
	same := c.CRD != nil && c.Policy.Status.CRD != nil && c.Policy.Status.CRD.UID == c.CRD.UID
	if same && c.Policy.Status.ObservedGeneration == c.Policy.Generation {
		return c
	}
	c.Policy = c.Policy.DeepCopy()
	status := &c.Policy.Status
	if !same {
		status.MigrationEvidence, status.PreservedData, status.UnconvertedWindow = nil, nil, nil
		status.Retirement, status.PromotedVersion, status.VersionsDrift, status.VersionsEdit = nil, "", nil, ""
	}
	if status.ObservedGeneration != c.Policy.Generation {
		if status.Drift != nil {
			status.Drift.Repairs = nil
		}
		if status.VersionsDrift != nil {
			status.VersionsDrift.Repairs, status.VersionsDrift.Answer = nil, v1alpha1.DriftRepaired
		}
	}
	return c
}

// Migrates reports that a migration runs, of the policy or of another client. A change of the
// CustomResourceDefinition would end it and invalidate its evidence.
func (c Cluster) Migrates() bool {
	return c.CRD != nil && crds.Condition(c.CRD, StorageMigrating) ||
		slices.ContainsFunc(c.Runs, func(run Run) bool { return !run.Over() })
}

// Over reports that no pod of the run writes any more.
func (r Run) Over() bool { return r.Record != nil && r.Record.Finished() || JobEnded(r.Job) }

// Suspended reports that the Job of the run is suspended. The run must have one.
func (r Run) Suspended() bool { return ptr.Deref(r.Job.Spec.Suspend, false) }

// JobEnded reports that the Job is complete or has failed.
func JobEnded(job *batchv1.Job) bool {
	if job == nil {
		return false
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue &&
			(condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

// CRDStatus is the part of the status about the CustomResourceDefinition; nil if there is none.
func (c Cluster) CRDStatus() *v1alpha1.CRDStatus {
	if c.CRD == nil {
		return nil
	}
	return &v1alpha1.CRDStatus{
		UID:            c.CRD.UID,
		Generation:     c.CRD.Generation,
		Strategy:       crds.Strategy(c.CRD),
		ServedVersions: crds.ServedVersions(c.CRD),
		StorageVersion: crds.StorageVersion(c.CRD),
		StoredVersions: slices.Clone(c.CRD.Status.StoredVersions),
		Writer:         c.writer(),
	}
}

// writer is the tool that writes the CustomResourceDefinition, and its source. Admission policies read it.
func (c Cluster) writer() string {
	writer := crds.WriterOf(c.CRD)
	if writer == nil {
		return ""
	}
	return strings.TrimSpace(writer.Tool + " " + writer.Source)
}

// ConversionIsOurs reports that the operator wrote spec.conversion, and no other client changed it
// since. If Crossplane generates the CustomResourceDefinition, that is about the XRD, and true while
// the XRD cannot be read.
func (c Cluster) ConversionIsOurs() bool {
	switch {
	case c.Composite != nil:
		return crds.ConversionIsBy(c.Composite, c.Composite.Spec.Conversion, names.ManagedBy)
	case c.CompositeProblem.Message != "":
		return true
	}
	return crds.ConversionIsBy(c.CRD, c.CRD.Spec.Conversion, names.ManagedBy)
}

// Copied reports that spec.conversion of the CustomResourceDefinition is that of the XRD, if Crossplane
// generates it.
func (c Cluster) Copied() bool {
	return c.CompositeProblem.Message == "" && (c.Composite == nil || crds.SameConversion(c.Composite.Spec.Conversion, c.CRD.Spec.Conversion))
}

// ServerName is the name in the serving certificate of the policy's converter.
func (c Cluster) ServerName() string {
	if external := ExternalServerName(c.Policy.Spec.Converter); external != "" {
		return external
	}
	return c.ServerNameAt(FleetOf(c.Policy))
}

// ServerNameAt is the name in the certificate of the pods of a fleet, or of the policy alone if fleet
// is empty.
func (c Cluster) ServerNameAt(fleet string) string {
	if fleet != "" {
		return names.FleetServerName(fleet, c.Settings.Namespace)
	}
	return names.ServerName(c.Policy.Name, c.Settings.Namespace)
}

// CertificatesAt is the source of the certificates of a fleet, or of the policy alone if fleet is empty.
func (c Cluster) CertificatesAt(fleet string) v1alpha1.Certificates {
	if fleet != "" {
		return ptr.Deref(c.FleetNamed(fleet).Spec.Certificates, v1alpha1.Certificates{})
	}
	return c.Policy.Spec.Certificates
}

// IssuesItself reports that cert-manager needs objects of this kind to issue the certificates of a
// fleet, or of the policy alone if fleet is empty.
func (c Cluster) IssuesItself(fleet string) bool {
	requested := c.CertificatesAt(fleet).CertManager
	return requested != nil && (c.CRD.Spec.Group == crds.CertManagerGroup || c.CRD.Spec.Group == requested.IssuerRef.Group)
}

// WorkloadAt configures the pods of a fleet, or of the policy alone if fleet is empty.
func (c Cluster) WorkloadAt(fleet string) v1alpha1.ConverterPods {
	if fleet != "" {
		return ptr.Deref(c.FleetNamed(fleet).Spec.Workload, v1alpha1.ConverterPods{})
	}
	return c.Policy.Spec.Pods()
}

// CertificateSecret names the Secret of a policy's serving certificate.
func CertificateSecret(policy *v1alpha1.ConversionPolicy) string {
	if ExternalServerName(policy.Spec.Converter) != "" {
		return names.ExternalCertificateSecret(policy.Name)
	}
	return names.CertificateSecret(policy.Name)
}

// ExternalServerName is the name in the serving certificate of a converter that users run;
// empty for one that the operator runs.
func ExternalServerName(converter v1alpha1.Converter) string {
	if service := converter.Service; service != nil {
		return names.ServiceName(service.Name, service.Namespace)
	}
	if converter.URL == nil {
		return ""
	}
	parsed, err := url.Parse(string(converter.URL.URL))
	if err != nil {
		return "" // the pattern of the field refuses such a URL
	}
	return parsed.Hostname()
}

// Labels of everything that the operator creates for the policy.
func (c Cluster) Labels(component string) map[string]string {
	return names.Labels(c.Policy.Name, component)
}

// Annotations of everything that the operator creates for the policy.
func (c Cluster) Annotations() map[string]string {
	return map[string]string{names.PolicyAnnotation: c.Policy.Name}
}

// Second is the current time with the precision of a status, one second.
func (c Cluster) Second() *metav1.Time { return new(metav1.NewTime(c.Now).Rfc3339Copy()) }

// Left is the rest of a duration that began at a time.
func (c Cluster) Left(since *metav1.Time, of time.Duration) time.Duration {
	return since.Add(of).Sub(c.Now)
}

// KeyPair reads a Secret of type kubernetes.io/tls.
func KeyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
