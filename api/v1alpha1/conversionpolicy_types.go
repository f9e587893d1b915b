// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.webhook.ready`,priority=1,description="Converter pods that are ready with the current revision"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.webhook.desired`,priority=1,description="Converter pods that are wanted"
// +kubebuilder:printcolumn:name="Fleet",type=string,JSONPath=`.status.webhook.fleet`,priority=1,description="The fleet that the converter pods belong to; empty for pods of this policy alone"
// +kubebuilder:printcolumn:name="CertExpiry",type=string,JSONPath=`.status.certificate.notAfter`,priority=1,description="When the serving certificate expires"
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.migration.estimatedCompletion`,priority=1,description="When the migration ends at its current rate"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1,description="The revision that the converter pods must serve"
// +kubebuilder:printcolumn:name="Failing",type=string,JSONPath=`.status.conversionFailures[*].cause`,priority=1,description="Why conversions fail in production, by the converter pods"
// +kubebuilder:printcolumn:name="DeletionBlocked",type=string,JSONPath=`.status.conditions[?(@.type=="DeletionBlocked")].reason`,priority=1,description="Why the policy stays although it was deleted"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What is done or missing, and what to do"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.contains('.')",message="metadata.name must be the name of the CustomResourceDefinition: <plural>.<group>, for example crontabs.example.com"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('.conversion-operator.io')",message="metadata.name must not name a CustomResourceDefinition of this operator: it reads these objects to run converter pods, so that no pod could convert them after an outage"
type ConversionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired conversion and migration.
	// +required
	Spec ConversionPolicySpec `json:"spec"`
	// status is what the operator has done and verified.
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

// ConversionPolicySpec is the desired conversion and migration of one
// CustomResourceDefinition.
// +kubebuilder:validation:XValidation:rule="!has(self.storageVersion) || !has(self.retirement) || self.retirement.all(r, r.version != self.storageVersion || r.action == 'Keep')",message="retirement must not name storageVersion: objects are to be written in it; set its action to Keep to take a retirement back"
// +kubebuilder:validation:XValidation:rule="!has(self.certificates) || self.certificates.type != 'Injected' || has(self.certificates.injected) || self.converter.type in ['Service', 'URL', 'None']",message="certificates.injected must name the Secret with the certificate that converter pods are to serve"
// +kubebuilder:validation:XValidation:rule="!has(self.workload) || self.converter.type in ['Declarative', 'Image']",message="workload must be empty unless converter.type is Declarative or Image: the operator runs no pods for other converters"
// +kubebuilder:validation:XValidation:rule="!has(self.workload) || self.workload.type != 'Fleet' || self.converter.type != 'Image'",message="workload.type must be Dedicated if converter.type is Image: fleets serve compiled rules only"
// +kubebuilder:validation:XValidation:rule="!has(self.certificates) || self.converter.type != 'Declarative' || has(self.workload) && self.workload.type == 'Dedicated'",message="certificates must be empty unless workload.type is Dedicated: a fleet has certificates of its own, in spec.certificates of the ConverterFleet"
type ConversionPolicySpec struct {
	// paused lets changes of this policy wait, as that of a Deployment does. What is there is
	// maintained: converter pods continue to run, and their certificates are renewed. Migrations
	// stop. A deletion of the policy does not wait.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// converter tells what converts objects.
	// +required
	Converter Converter `json:"converter"`

	// workload tells in which pods the converter runs. By default, rules run in the pods of
	// the fleet named default, which many policies share, and an image in pods of this policy
	// alone.
	// +optional
	Workload *Workload `json:"workload,omitempty"`

	// certificates tells where the converter's certificates come from. Without it, they are
	// those of the fleet, or self-managed.
	// +optional
	Certificates Certificates `json:"certificates,omitempty,omitzero"`

	// verification tells what the operator verifies before it points the
	// CustomResourceDefinition at the converter, and after each change of the rules.
	// +optional
	Verification Verification `json:"verification,omitempty,omitzero"`

	// storageVersion is the desired storage version. The operator makes it the storage
	// version after the conversion is active and verified; the migration follows. If it is
	// empty, the manifest of the CustomResourceDefinition decides. If it is set, that
	// manifest must have the same storage version.
	// +optional
	StorageVersion VersionName `json:"storageVersion,omitempty"`

	// migration configures when and how stored objects are rewritten at the storage
	// version.
	// +optional
	// +kubebuilder:default={}
	Migration Migration `json:"migration,omitempty,omitzero"`

	// retirement lists the versions to retire, and how far the operator goes with each.
	// The operator first needs the proof that every object is stored at another version.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=16
	Retirement []Retirement `json:"retirement,omitempty"`

	// drift tells what happens after another client changes spec.conversion of an active
	// CustomResourceDefinition. Repair writes it back, at most five times within ten
	// minutes; if the other client continues, the policy stalls with the reason
	// Contested. Tolerate leaves the change in place: the policy stalls with the
	// reason Drifted, which names the client, and the admission policies that protect
	// spec.conversion admit every client's writes of it. The webhook configuration that refuses
	// objects of a size that cannot be converted stays as it is until the conversion is restored.
	// Migrations are suspended in both cases. The same applies to the fields of spec.versions that
	// storageVersion and retirement have changed; these are written back at most twice a
	// day.
	// +optional
	// +kubebuilder:default=Repair
	Drift DriftAction `json:"drift,omitempty"`

	// deletionPolicy tells what happens to the CustomResourceDefinition and the converter
	// when this policy is deleted. Block keeps the policy and its converter while more
	// than one version is served or may be stored. RestoreNone is like Block, but does
	// not wait for versions that differ in nothing. Both set strategy None first, and
	// remove the converter when API servers no longer call it. Orphan releases the policy
	// immediately and leaves everything in place: the converter continues to run, and a
	// later policy of the same name adopts it. You can change this field while the policy
	// is being deleted.
	// +optional
	// +kubebuilder:default=Block
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Unsupported says why this version of the operator cannot follow a policy: a later version wrote
// it, and has types that this version does not know, or members that the API server has removed. It
// is empty if it can.
func (s *ConversionPolicySpec) Unsupported() string {
	unknown := func(field, value string) string {
		return fmt.Sprintf("spec.%s.type: this version of the operator does not know %q, or not the settings that it has: install the version that wrote them, or choose another type", field, value)
	}
	switch {
	case !s.Converter.known():
		return unknown("converter", string(s.Converter.Type))
	case !s.Certificates.known():
		return unknown("certificates", string(s.Certificates.Type))
	case s.Workload != nil && s.Workload.Type != WorkloadFleet && s.Workload.Type != WorkloadDedicated:
		return unknown("workload", string(s.Workload.Type))
	}
	return ""
}

// Pods configures the pods of this policy alone.
func (s *ConversionPolicySpec) Pods() ConverterPods {
	if s.Workload == nil || s.Workload.Dedicated == nil {
		return ConverterPods{}
	}
	return *s.Workload.Dedicated
}

// DeletionPolicy tells what happens to the converter when a policy is deleted.
// +kubebuilder:validation:Enum=Block;RestoreNone;Orphan
type DeletionPolicy string

const (
	// DeletionBlock keeps the policy and its converter while objects need a conversion.
	DeletionBlock DeletionPolicy = "Block"
	// DeletionRestoreNone is like Block, but does not wait if a conversion changes
	// nothing.
	DeletionRestoreNone DeletionPolicy = "RestoreNone"
	// DeletionOrphan releases the policy immediately, and leaves everything in place.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// VersionName is the name of a version of a CustomResourceDefinition.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
type VersionName string

// ConversionPolicyStatus is what the operator has done and verified. Fields with a fixed set of
// values have a type that lists them. The schema does not: later versions of the operator may add
// values, and an API server with an earlier CustomResourceDefinition would refuse the whole status.
type ConversionPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the gates, in order, and their summaries Ready, Reconciling and
	// Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// crd is the CustomResourceDefinition as last observed. What the status says of its objects and
	// versions is about the one with this uid, and is forgotten with it.
	// +optional
	CRD *CRDStatus `json:"crd,omitempty"`

	// revision is the desired revision of the converter: the hash of the ruleset compiled from
	// the rules, or of the configuration of an image's pods.
	// +optional
	Revision string `json:"revision,omitempty"`

	// activeRevisions are the revision that spec.conversion of the
	// CustomResourceDefinition names, and earlier ones that API servers may still request.
	// Converter pods serve all of them, besides revision.
	// +optional
	// +listType=map
	// +listMapKey=revision
	ActiveRevisions []ActiveRevision `json:"activeRevisions,omitempty"`

	// verification is what the operator verified before it pointed the
	// CustomResourceDefinition at the converter, and afterwards.
	// +optional
	Verification *VerificationStatus `json:"verification,omitempty"`

	// conversionFailures are the recently failed conversions, by versions and cause. The
	// operator does not know the failures of a converter that it does not run rules in.
	// +optional
	// +listType=map
	// +listMapKey=from
	// +listMapKey=to
	// +listMapKey=cause
	// +kubebuilder:validation:MaxItems=10
	ConversionFailures []ConversionFailure `json:"conversionFailures,omitempty"`

	// oversizedObjects are the first known objects that are truncated at a version, by name. The
	// operator searches for them with each sample, and reads known ones again every 15 minutes.
	// +optional
	// +listType=map
	// +listMapKey=object
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=20
	OversizedObjects []OversizedObject `json:"oversizedObjects,omitempty"`

	// unconvertedWindow is the period in which the CustomResourceDefinition served several
	// versions without a conversion, before this policy was active.
	// +optional
	UnconvertedWindow *UnconvertedWindow `json:"unconvertedWindow,omitempty"`

	// webhook is the state of the converter pods.
	// +optional
	Webhook *WebhookStatus `json:"webhook,omitempty"`

	// certificate is the serving certificate of the converter pods.
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`

	// migration is the latest run.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// migrationEvidence is the proof that every object is stored at one version.
	// +optional
	MigrationEvidence *MigrationEvidence `json:"migrationEvidence,omitempty"`

	// preservedData counts the objects that have preserved values in annotations.
	// +optional
	PreservedData *PreservedDataStatus `json:"preservedData,omitempty"`

	// activatedCRD is the uid of the CustomResourceDefinition whose spec.conversion this
	// policy has set. It is removed when the policy releases the CustomResourceDefinition:
	// until then, objects may be unreadable without the converter.
	// +optional
	ActivatedCRD types.UID `json:"activatedCRD,omitempty"`

	// operatorUsername is the user name of the operator in requests to the API server, which is
	// that of its ServiceAccount. The admission policies that protect spec.conversion of the
	// CustomResourceDefinition admit the writes of this user.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	OperatorUsername string `json:"operatorUsername,omitempty"`

	// conversionRemovedTime is when the operator observed, during the deletion of this
	// policy, that the CustomResourceDefinition no longer uses the converter. API servers
	// may call the converter for a short time after that, so it continues to run.
	// +optional
	ConversionRemovedTime *metav1.Time `json:"conversionRemovedTime,omitempty"`

	// drift is the latest change of spec.conversion by another client since the policy is
	// active.
	// +optional
	Drift *DriftStatus `json:"drift,omitempty"`

	// versions are the versions of the CustomResourceDefinition, in the order in which
	// clients prefer them, and whether each can be removed.
	// +optional
	// +listType=map
	// +listMapKey=name
	Versions []VersionStatus `json:"versions,omitempty"`

	// removable is text for the printer column Removable, which cannot list elements of
	// versions: the versions whose safeToRemove is true, such as "v1alpha1,v1beta1", or
	// "none". Programs read versions.
	// +optional
	Removable string `json:"removable,omitempty"`

	// promotedVersion is the storage version that spec.storageVersion brought about. If the operator
	// observes another one after that, a client has reverted it.
	// +optional
	PromotedVersion string `json:"promotedVersion,omitempty"`

	// retirement is the progress of each version of spec.retirement.
	// +optional
	// +listType=map
	// +listMapKey=version
	Retirement []RetirementStatus `json:"retirement,omitempty"`

	// versionsEdit identifies the next change of spec.versions, at crd.generation, by its fields and
	// values. The operator records it before it makes it, so that a change that another client
	// reverts immediately is not repeated forever.
	// +optional
	VersionsEdit string `json:"versionsEdit,omitempty"`

	// versionsDrift is the latest change by another client that reverted what this policy
	// had changed in spec.versions.
	// +optional
	VersionsDrift *DriftStatus `json:"versionsDrift,omitempty"`
}

// CRDStatus is the CustomResourceDefinition as last observed.
type CRDStatus struct {
	// uid of the CustomResourceDefinition.
	// +required
	UID types.UID `json:"uid"`
	// generation of the CustomResourceDefinition.
	// +required
	Generation int64 `json:"generation"`
	// strategy is spec.conversion.strategy: None or Webhook.
	// +optional
	Strategy apiextensionsv1.ConversionStrategyType `json:"strategy,omitempty"`
	// servedVersions are the versions that API servers serve.
	// +optional
	// +listType=atomic
	ServedVersions []string `json:"servedVersions,omitempty"`
	// storageVersion is the storage version.
	// +optional
	StorageVersion string `json:"storageVersion,omitempty"`
	// storedVersions is status.storedVersions: the versions at which objects may be
	// stored.
	// +optional
	// +listType=set
	StoredVersions []string `json:"storedVersions,omitempty"`
	// writer is the tool that writes the CustomResourceDefinition from a source of its own: Crossplane,
	// OLM, kro or Helm; and after a space the source, as resource/name, such as Crossplane
	// compositeresourcedefinitions.apiextensions.crossplane.io/databases.example.com, or for Helm the
	// namespace and name of the release. Changes that must last belong into that source.
	// +optional
	Writer string `json:"writer,omitempty"`
}

// ActiveRevision is a revision of the converter that spec.conversion of the
// CustomResourceDefinition names, or has named.
type ActiveRevision struct {
	// revision identifies it: the hash of a ruleset, which is the last segment of the
	// webhook's path, of the configuration of an image's pods, or of the endpoint of an
	// external converter. If a fleet serves the ruleset, a dot and its name follow.
	// +required
	Revision string `json:"revision"`
	// replacedTime is when the CustomResourceDefinition was observed to name another
	// revision; absent for the current one.
	// +optional
	ReplacedTime *metav1.Time `json:"replacedTime,omitempty"`
}

// WebhookStatus is the state of the converter pods, or of the endpoints of a
// converter that the operator does not run.
type WebhookStatus struct {
	// desired is the desired number of converter pods.
	// +required
	Desired int32 `json:"desired"`
	// ready is the number of converter pods that are ready with the current revision.
	// +required
	Ready int32 `json:"ready"`
	// fleet is the ConverterFleet that the pods belong to; absent if they are those of this
	// policy alone.
	// +optional
	Fleet string `json:"fleet,omitempty"`
}
