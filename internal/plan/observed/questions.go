// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"net/url"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// StorageMigrating is set on a CustomResourceDefinition by Kubernetes' own
// StorageVersionMigration. It prunes status.storedVersions only while the generation
// stays the same.
const StorageMigrating apiextensionsv1.CustomResourceDefinitionConditionType = "StorageMigrating"

// CAKey is the key of the trusted authorities in a Secret, as cert-manager has it.
const CAKey = "ca.crt"

// None tells that the policy wants nothing to be converted.
func (c Cluster) None() bool { return c.Policy.Spec.Converter.None != nil }

// Rulesets tells that the policy wants compiled rules to convert.
func (c Cluster) Rulesets() bool { return c.Policy.Spec.Converter.Declarative != nil }

// IsExternal tells that users run the converter that the policy wants.
func (c Cluster) IsExternal() bool {
	return c.Policy.Spec.Converter.Service != nil || c.Policy.Spec.Converter.URL != nil
}

// Deploys tells that the operator runs the converter that the policy wants.
func (c Cluster) Deploys() bool {
	return c.Policy.Spec.Converter.Declarative != nil || c.Policy.Spec.Converter.Image != nil
}

// Unconverted tells that nothing converts.
func (c Cluster) Unconverted() bool { return crds.Strategy(c.CRD) == apiextensionsv1.NoneConverter }

// IsDeleted tells that the policy is being deleted.
func (c Cluster) IsDeleted() bool { return !c.Policy.DeletionTimestamp.IsZero() }

// PointsHere tells that the CustomResourceDefinition converts through this policy's Service.
func (c Cluster) PointsHere() bool {
	service := WebhookService(c.CRD)
	return service != nil && service.Namespace == c.Settings.Namespace && service.Name == names.Child(c.Policy.Name)
}

// WebhookService is the Service that a CustomResourceDefinition converts through, or nil.
func WebhookService(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.ServiceReference {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig.Service
}

// WebhookOf names what a CustomResourceDefinition converts through.
func WebhookOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if service := WebhookService(crd); service != nil {
		return "the Service " + service.Namespace + "/" + service.Name
	}
	if conversion := crd.Spec.Conversion; conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.URL != nil {
		return *conversion.Webhook.ClientConfig.URL
	}
	return "another webhook"
}

// CABundle is what the CustomResourceDefinition must trust so that API servers can
// verify every converter pod, now and on the way to the next certificate: what the
// Secret that pods mount says, or what another client has injected. It is empty where
// nothing is known yet.
func (c Cluster) CABundle() []byte {
	if there := c.BundleThere(); c.Injected() && len(there) > 0 {
		return there
	}
	if c.Certificate == nil {
		return nil
	}
	return c.Certificate.Data[CAKey]
}

// BundleThere is caBundle of the CustomResourceDefinition, no matter who wrote it.
func (c Cluster) BundleThere() []byte {
	if c.CRD == nil || c.CRD.Spec.Conversion == nil || c.CRD.Spec.Conversion.Webhook == nil || c.CRD.Spec.Conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return c.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// Injected tells that another client writes caBundle.
func (c Cluster) Injected() bool { return c.Policy.Spec.Certificates.Injected != nil }

// Recreated tells that the CustomResourceDefinition is another one than the status tells of.
func (c Cluster) Recreated() bool {
	before := c.Policy.Status.CRD
	return before != nil && before.UID != c.CRD.UID
}

// Migrates tells that a migration runs, ours or another client's. A change of the
// CustomResourceDefinition would end it, and void what it has proven.
func (c Cluster) Migrates() bool {
	return c.CRD != nil && crds.Condition(c.CRD, StorageMigrating) ||
		slices.ContainsFunc(c.Runs, func(run Run) bool { return !run.Over() })
}

// Over reports that no pod of the run writes any more.
func (r Run) Over() bool { return r.Record != nil && r.Record.Finished() || JobEnded(r.Job) }

// Suspended reports that the run's Job is told to have no pods. There must be one.
func (r Run) Suspended() bool { return ptr.Deref(r.Job.Spec.Suspend, false) }

// JobEnded reports that the Job's controller has given it up or seen it through.
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

// CRDStatus is what the status says of the CustomResourceDefinition; nil where there is none.
func (c Cluster) CRDStatus() *v1alpha1.CRDStatus {
	if c.CRD == nil {
		return nil
	}
	return &v1alpha1.CRDStatus{
		UID:            c.CRD.UID,
		Generation:     c.CRD.Generation,
		Strategy:       string(crds.Strategy(c.CRD)),
		ServedVersions: crds.ServedVersions(c.CRD),
		StorageVersion: crds.StorageVersion(c.CRD),
		StoredVersions: slices.Clone(c.CRD.Status.StoredVersions),
	}
}

// ServerName is the name that API servers verify of the policy's converter.
func (c Cluster) ServerName() string {
	if external := ExternalServerName(c.Policy.Spec.Converter); external != "" {
		return external
	}
	return names.ServerName(c.Policy.Name, c.Settings.Namespace)
}

// CertificateSecret names the Secret of a policy's serving certificate.
func CertificateSecret(policy *v1alpha1.ConversionPolicy) string {
	if ExternalServerName(policy.Spec.Converter) != "" {
		return names.ExternalCertificateSecret(policy.Name)
	}
	return names.CertificateSecret(policy.Name)
}

// ExternalServerName is the name that API servers verify of a converter that
// users run; empty for one that the operator runs.
func ExternalServerName(converter v1alpha1.Converter) string {
	if service := converter.Service; service != nil {
		return service.Name + "." + service.Namespace + ".svc"
	}
	if converter.URL == nil {
		return ""
	}
	parsed, err := url.Parse(converter.URL.URL)
	if err != nil {
		return "" // the CustomResourceDefinition's pattern lets no such URL pass
	}
	return parsed.Hostname()
}

// Labels are on everything that is created for the policy.
func (c Cluster) Labels(component string) map[string]string {
	return names.Labels(c.Policy.Name, component)
}

// Annotations are on everything that is created for the policy.
func (c Cluster) Annotations() map[string]string {
	return map[string]string{names.PolicyAnnotation: c.Policy.Name}
}

// Second is now, as exact as a status keeps it.
func (c Cluster) Second() *metav1.Time { return new(metav1.NewTime(c.Now).Rfc3339Copy()) }

// Left is how much of a time is left since a moment.
func (c Cluster) Left(since *metav1.Time, of time.Duration) time.Duration {
	return since.Add(of).Sub(c.Now)
}

// KeyPair reads a Secret of type kubernetes.io/tls.
func KeyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
