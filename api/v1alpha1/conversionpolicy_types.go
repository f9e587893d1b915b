// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConversionPolicy makes changing the schema of one CustomResourceDefinition safe.
// Its name is the name of that CustomResourceDefinition.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cvp
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether every requested step is done and proven"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the policy is, or is not, ready"
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.status.crd.storageVersion`,description="The version in which objects are written to etcd"
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.crd.storedVersions`,description="The versions in which objects may still be stored"
// +kubebuilder:printcolumn:name="Migrated",type=string,JSONPath=`.status.migration.progress`,description="Objects done of objects found by the latest migration"
// +kubebuilder:printcolumn:name="Removable",type=string,JSONPath=`.status.removable`,description="Versions that may be removed from the CustomResourceDefinition now"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.status.crd.strategy`,priority=1,description="The CustomResourceDefinition's conversion strategy"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.webhook.available`,priority=1,description="Converter pods that are proven, of those wanted"
// +kubebuilder:printcolumn:name="CertExpiry",type=string,JSONPath=`.status.certificate.notAfter`,priority=1,description="When the serving certificate expires"
// +kubebuilder:printcolumn:name="Rate",type=integer,JSONPath=`.status.migration.ratePerSecond`,priority=1,description="Objects that the migration does in a second"
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.migration.estimatedCompletion`,priority=1,description="When the migration ends if it goes on like this"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.converter.revision`,priority=1,description="The revision that the converter pods must serve"
// +kubebuilder:printcolumn:name="Failing",type=string,JSONPath=`.status.conversionFailures[*].cause`,priority=1,description="Why conversions fail in production, by the converter pods"
// +kubebuilder:printcolumn:name="DeletionBlocked",type=string,JSONPath=`.status.conditions[?(@.type=="DeletionBlocked")].reason`,priority=1,description="Why the policy stays although it was deleted"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What is done or missing, and what to do"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.contains('.')",message="metadata.name must be the name of the CustomResourceDefinition: <plural>.<group>, for example crontabs.example.com"
type ConversionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted conversion and migration.
	// +required
	Spec ConversionPolicySpec `json:"spec"`
	// status is what the operator has done and proven.
	// +optional
	Status ConversionPolicyStatus `json:"status,omitempty"`
}

// ConversionPolicyList is a list of ConversionPolicy objects.
//
// +kubebuilder:object:root=true
type ConversionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ConversionPolicy `json:"items"`
}

// ConversionPolicySpec is the wanted conversion and migration of one CustomResourceDefinition.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storageVersion) || !has(self.retirement) || self.retirement.all(r, r.version != self.storageVersion || r.action == 'Report')",message="retirement must not name storageVersion: objects are to be written in it; set its action to Report to take a retirement back"
// +kubebuilder:validation:XValidation:rule="!has(self.certificates) || !has(self.certificates.injected) || has(self.certificates.injected.secretName) || !has(self.converter.declarative)",message="certificates.injected.secretName must name the Secret with the certificate that converter pods are to serve"
type ConversionPolicySpec struct {
	// suspend stops all changes by the operator. Converter pods that run keep
	// answering, so objects stay readable.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// converter says who converts, and how.
	// +required
	Converter Converter `json:"converter"`

	// workload shapes the converter pods.
	// +optional
	// +kubebuilder:default={}
	Workload Workload `json:"workload,omitempty,omitzero"`

	// certificates says where the converter's certificates come from.
	// +optional
	// +kubebuilder:default={selfManaged: {}}
	Certificates Certificates `json:"certificates,omitempty,omitzero"`

	// verification says what is proven before the CustomResourceDefinition is
	// pointed at the converter, and each time that its rules change.
	// +optional
	// +kubebuilder:default={}
	Verification Verification `json:"verification,omitempty,omitzero"`

	// storageVersion is the version in which objects are to be written to etcd. The
	// operator makes it the storage version once conversion is active and verified;
	// the migration follows. Without it the storage version is the business of who
	// writes the CustomResourceDefinition, whose manifest must say the same.
	// +optional
	StorageVersion VersionName `json:"storageVersion,omitempty"`

	// migration says when stored objects are rewritten in the storage version.
	// +optional
	// +kubebuilder:default={}
	Migration Migration `json:"migration,omitempty,omitzero"`

	// retirement lists the versions that are to go, and how far the operator goes
	// with each. Nothing is done without the proof that every object is stored in
	// another version.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=16
	Retirement []Retirement `json:"retirement,omitempty"`

	// drift says what becomes of a foreign write to spec.conversion of the
	// CustomResourceDefinition, once it converts by this policy. Repair writes it
	// back, at most five times within ten minutes: against a writer that does not
	// give in, the policy stalls with the reason ConversionContested. Report writes
	// nothing, and says who wrote what. Migrations stop meanwhile in both. It holds
	// as well for what storageVersion and retirement had changed in spec.versions,
	// which is written back twice a day at most.
	// +optional
	// +kubebuilder:default=Repair
	Drift DriftAction `json:"drift,omitempty"`

	// deletionPolicy says what becomes of the CustomResourceDefinition and the
	// converter when this policy is deleted. Retain keeps the policy, and the
	// converter at work, while more than one version is served or may be stored.
	// RestoreNone also lets go of versions that differ in nothing. Both set
	// strategy None first, and remove the converter once no API server asks it any
	// more. Abandon releases the policy immediately and leaves everything in place: the converter
	// goes on, and a later policy of the same name takes it over. It may be changed
	// while this policy is being deleted.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy says what becomes of the converter when a policy is deleted.
//
// +kubebuilder:validation:Enum=Retain;RestoreNone;Abandon
type DeletionPolicy string

const (
	// DeletionRetain keeps policy and converter while objects need a conversion.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionRestoreNone also lets go where a conversion changes nothing.
	DeletionRestoreNone DeletionPolicy = "RestoreNone"
	// DeletionAbandon releases the policy immediately, and leaves everything in place.
	DeletionAbandon DeletionPolicy = "Abandon"
)

// VersionName is the name of a version of a CustomResourceDefinition.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
type VersionName string

// ConversionPolicyStatus is what the operator has done and proven.
type ConversionPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the gates, in order, and their summaries Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// crd is the CustomResourceDefinition as last seen.
	// +optional
	CRD *CRDStatus `json:"crd,omitempty"`

	// converter is the revision that converts: a ruleset compiled from the rules, or an image.
	// +optional
	Converter *ConverterStatus `json:"converter,omitempty"`

	// activeRevisions are the revision by which the CustomResourceDefinition
	// converts, and previous ones that API servers may still request. Converter
	// pods serve all of them, besides converter.revision.
	// +optional
	// +listType=map
	// +listMapKey=revision
	ActiveRevisions []ActiveRevision `json:"activeRevisions,omitempty"`

	// verification is what was proven before the CustomResourceDefinition was
	// pointed at the converter, and what was found out since.
	// +optional
	Verification *VerificationStatus `json:"verification,omitempty"`

	// conversionFailures are the conversions that converter pods failed to do lately,
	// by versions and cause. Of a converter that users bring nothing is known here.
	// +optional
	// +listType=map
	// +listMapKey=from
	// +listMapKey=to
	// +listMapKey=cause
	// +kubebuilder:validation:MaxItems=10
	ConversionFailures []ConversionFailure `json:"conversionFailures,omitempty"`

	// oversizedObjects are objects that have no whole form at a version; absent where none
	// are known of.
	// +optional
	OversizedObjects *OversizedStatus `json:"oversizedObjects,omitempty"`

	// unconvertedWindow is the time in which the CustomResourceDefinition served
	// several versions with strategy None, before it converted through the converter.
	// +optional
	UnconvertedWindow *UnconvertedWindow `json:"unconvertedWindow,omitempty"`

	// webhook is the state of the converter pods.
	// +optional
	Webhook *WebhookStatus `json:"webhook,omitempty"`

	// certificate is the serving certificate of the converter pods.
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`

	// rotation is how far the change from one certificate authority to another is.
	// +optional
	Rotation *RotationStatus `json:"rotation,omitempty"`

	// migration is the latest run.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// migrationEvidence is the proof that every stored object is in one version.
	// +optional
	MigrationEvidence *MigrationEvidence `json:"migrationEvidence,omitempty"`

	// preservedData counts the objects that hold, in annotations, values of versions
	// that can express more than the version in which they are stored.
	// +optional
	PreservedData *PreservedDataStatus `json:"preservedData,omitempty"`

	// activatedCRD is the uid of the CustomResourceDefinition that this policy has
	// pointed at its converter, and not yet released: it may hold objects that
	// cannot be read without.
	// +optional
	ActivatedCRD types.UID `json:"activatedCRD,omitempty"`

	// conversionRemovedTime is when the CustomResourceDefinition was seen to convert through
	// this policy's converter no more, while the policy is being deleted. API
	// servers may go on by what was before for some time: the converter stays until
	// that is past.
	// +optional
	ConversionRemovedTime *metav1.Time `json:"conversionRemovedTime,omitempty"`

	// drift is the latest foreign write to spec.conversion of the
	// CustomResourceDefinition, since it converts by this policy.
	// +optional
	Drift *DriftStatus `json:"drift,omitempty"`

	// versions are those of the CustomResourceDefinition, in the order in which
	// clients prefer them, and whether each may go.
	// +optional
	// +listType=map
	// +listMapKey=name
	Versions []VersionStatus `json:"versions,omitempty"`

	// removable names the versions that may be removed from the
	// CustomResourceDefinition now, as text: "v1alpha1,v1beta1", or "none".
	// +optional
	Removable string `json:"removable,omitempty"`

	// promotion is the storage version that was reached by spec.storageVersion.
	// +optional
	Promotion *PromotionStatus `json:"promotion,omitempty"`

	// retirement is how far each version of spec.retirement is.
	// +optional
	// +listType=map
	// +listMapKey=version
	Retirement []RetirementStatus `json:"retirement,omitempty"`

	// versionsEdit is the change of spec.versions that is made next. It is written
	// down before, so that a promotion that is reverted immediately is not repeated forever.
	// +optional
	VersionsEdit *VersionsEdit `json:"versionsEdit,omitempty"`

	// versionsDrift is the latest foreign write to spec.versions of the
	// CustomResourceDefinition that took back what this policy had done there.
	// +optional
	VersionsDrift *DriftStatus `json:"versionsDrift,omitempty"`
}

// CRDStatus is the CustomResourceDefinition as last seen.
type CRDStatus struct {
	// uid of the CustomResourceDefinition.
	// +required
	UID types.UID `json:"uid"`
	// generation of the CustomResourceDefinition.
	// +required
	Generation int64 `json:"generation"`
	// strategy is spec.conversion.strategy.
	// +optional
	Strategy string `json:"strategy,omitempty"`
	// servedVersions are the versions that clients may use.
	// +optional
	// +listType=atomic
	ServedVersions []string `json:"servedVersions,omitempty"`
	// storageVersion is the version in which objects are written.
	// +optional
	StorageVersion string `json:"storageVersion,omitempty"`
	// storedVersions are the versions in which objects may be stored, as the API server records it.
	// +optional
	// +listType=set
	StoredVersions []string `json:"storedVersions,omitempty"`
}

// ConverterStatus is the revision of the converter that the policy wants now.
type ConverterStatus struct {
	// revision identifies it: the hash of the compiled ruleset, which converter pods
	// report, or of what shapes the pods of an image.
	// +required
	Revision string `json:"revision"`
	// verdicts say, for each spoke, what a conversion to and from the hub preserves.
	// +optional
	// +listType=map
	// +listMapKey=version
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// ActiveRevision is a revision of the converter that spec.conversion of the
// CustomResourceDefinition names, or named.
type ActiveRevision struct {
	// revision identifies it: the hash of a ruleset, which is the last segment of the
	// webhook's path; of the pods of an image; or of the endpoint of an external
	// converter.
	// +required
	Revision string `json:"revision"`
	// replacedTime is when the CustomResourceDefinition was seen to name another
	// revision; absent while it names this one.
	// +optional
	ReplacedTime *metav1.Time `json:"replacedTime,omitempty"`
}

// WebhookStatus is the state of the converter pods, or of the endpoints of a
// converter that the operator does not run.
type WebhookStatus struct {
	// desired is the number of converter pods wanted.
	// +required
	Desired int32 `json:"desired"`
	// ready is the number of converter pods that are ready with the current revision.
	// +required
	Ready int32 `json:"ready"`
	// available is ready and desired as text: "2/2".
	// +optional
	Available string `json:"available,omitempty"`
}
