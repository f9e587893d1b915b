// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
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
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.status.crd.strategy`,priority=1,description="The CustomResourceDefinition's conversion strategy"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.webhook.available`,priority=1,description="Converter pods that are proven, of those wanted"
// +kubebuilder:printcolumn:name="CertExpiry",type=string,JSONPath=`.status.certificate.notAfter`,priority=1,description="When the serving certificate expires"
// +kubebuilder:printcolumn:name="PlanHash",type=string,JSONPath=`.status.plan.hash`,priority=1,description="The compiled rules that the converter pods must serve"
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

	// migration says when stored objects are rewritten in the storage version.
	// +optional
	// +kubebuilder:default={}
	Migration Migration `json:"migration,omitempty,omitzero"`
}

// Converter says who converts. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.declarative)",message="set exactly one kind of converter: declarative"
type Converter struct {
	// declarative converts by two-way rules that are written in this policy.
	// +optional
	Declarative *DeclarativeConverter `json:"declarative,omitempty"`
}

// DeclarativeConverter is a star of two-way rules: every version converts to
// and from the hub. A version of the CustomResourceDefinition that is neither
// hub nor spoke converts by preservation alone: same path and type on both
// sides is copied, the rest is kept aside.
//
// +kubebuilder:validation:XValidation:rule="self.spokes.all(s, s.version != self.hub)",message="a spoke's version must differ from the hub: rules convert between a spoke and the hub"
type DeclarativeConverter struct {
	// hub is the version that all others convert to and from.
	// +required
	Hub VersionName `json:"hub"`

	// spokes are the other versions, each with its rules.
	// +required
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Spokes []Spoke `json:"spokes"`
}

// VersionName is the name of a version of a CustomResourceDefinition.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
type VersionName string

// Spoke is one version and the rules between it and the hub.
type Spoke struct {
	// version is the version that these rules convert to and from the hub.
	// +required
	Version VersionName `json:"version"`

	// rules are written from the spoke to the hub; the way back is derived.
	// A field that no rule names is copied where both versions have it, and
	// otherwise kept aside in an annotation until the object comes back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Rules []Rule `json:"rules,omitempty"`
}

// Rule is one two-way rule. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.move), has(self.format), has(self.default), has(self.values), has(self.drop), has(self.wrap), has(self.cast)].filter(x, x).size() == 1",message="set exactly one of move, format, default, values, drop, wrap, cast"
type Rule struct {
	// move has one value at different paths in the two versions.
	// +optional
	Move *MoveRule `json:"move,omitempty"`

	// format has one string in the spoke that is several fields in the hub.
	// +optional
	Format *FormatRule `json:"format,omitempty"`

	// default gives a value to a field that only one of the two versions has.
	// +optional
	Default *DefaultRule `json:"default,omitempty"`

	// values has one string that is written otherwise in the two versions, by a table.
	// +optional
	Values *ValuesRule `json:"values,omitempty"`

	// drop gives a field of one of the two versions up: the one rule that loses.
	// +optional
	Drop *DropRule `json:"drop,omitempty"`

	// wrap has one value in one of the two versions that is a list in the other.
	// +optional
	Wrap *WrapRule `json:"wrap,omitempty"`

	// cast has one integer in one of the two versions that is a string in the other.
	// +optional
	Cast *CastRule `json:"cast,omitempty"`
}

// Path is a field of an object: `.spec.host`, `.spec.ports[*].name` (every
// element of a list, every value of a map), `.metadata.labels["app.kubernetes.io/name"]`.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^\.[A-Za-z_$][A-Za-z0-9_$-]*((\.[A-Za-z_$][A-Za-z0-9_$-]*)|(\["[^"\\]+"\])|(\[\*\]))*$`
type Path string

// MoveRule moves a value, a whole subtree of any type, to another path.
type MoveRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
}

// FormatRule splits and joins: the spoke's string is parsed into the hub's
// fields, and printed from them, by one template.
type FormatRule struct {
	// from is the path of the string in the spoke.
	// +required
	From Path `json:"from"`

	// template is text with named holes, `{host}:{port}`. Two holes must have
	// text between them, so that there is one way only to parse. A hole before a
	// text takes as little as it can; the last hole takes the rest.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template"`

	// to names the hub's path for every hole of the template.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	To map[string]Path `json:"to"`
}

// DefaultRule fills a field that only one of the two versions has. Only a whole
// object is filled, never a fragment that somebody applies, and only where the
// object above the field, as far as both versions have it, is there. On the way
// back the value is taken away; any other value, an explicit null, and a field
// that was absent are kept aside and come back as they were.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field that only the spoke has, or to, for one that only the hub has"
type DefaultRule struct {
	// from is the path of a field that only the spoke has.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field that only the hub has.
	// +optional
	To Path `json:"to,omitempty"`
	// value is what the field gets, of the field's type.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// DropRule gives up a field that the other version does not have: whatever it
// holds, a null or a whole subtree too, is gone once the object was converted.
// Without any rule such a field is kept aside. A field of the other version that
// has the same path is kept aside there.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field of the spoke, or to, for one of the hub"
type DropRule struct {
	// from is the path of a field of the spoke.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field of the hub.
	// +optional
	To Path `json:"to,omitempty"`
}

// WrapRule makes a value the one element of a list, and the first element of a
// list the value; which of the two is the list, the schemas say. A missing value
// is a missing list, and a null a null. A list that has no element, more than
// one, or a null, is kept aside and comes back whole.
type WrapRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
}

// CastType says how a string writes an integer.
//
// +kubebuilder:validation:Enum=Integer;Seconds
type CastType string

const (
	// CastInteger is the integer in decimal: "8080".
	CastInteger CastType = "Integer"
	// CastSeconds is a duration of as many seconds: "1h30m0s".
	CastSeconds CastType = "Seconds"
)

// CastRule writes an integer as a string, and reads the string; which of the two
// is the string, the schemas say. A missing value stays missing, and a null a
// null. A string that is read and not written that way, such as a duration of
// "90s", is kept aside besides, and one that is not read at all, such as "007" or
// "1.5s", is kept aside alone: the other version has no value then.
type CastRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// as says how the string is written: Integer in decimal ("8080"), Seconds as
	// a duration ("1h30m0s" is 5400).
	// +required
	As CastType `json:"as"`
}

// ValuesRule translates a string by a table, and back by the same table. A value
// that the table does not have, null among them, is copied as it is; a missing
// one stays missing. What would not come back as it was is kept aside.
type ValuesRule struct {
	// from is the path of the string in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path of the string in the hub.
	// +required
	To Path `json:"to"`
	// table pairs the spoke's values with the hub's. Where several values of the
	// spoke are one of the hub, the first of them is what it is on the way back.
	// +required
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Table []ValuePair `json:"table"`
}

// ValuePair is a value in the spoke, and what it is in the hub.
type ValuePair struct {
	// from is the value in the spoke.
	// +required
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// to is the value in the hub.
	// +required
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
}

// Workload shapes the converter pods.
type Workload struct {
	// replicas is the number of converter pods.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// resources of each converter pod.
	// +optional
	// +kubebuilder:default={requests: {cpu: "50m", memory: "32Mi"}, limits: {memory: "256Mi"}}
	Resources Resources `json:"resources,omitempty,omitzero"`
}

// Resources are compute resources of a container.
type Resources struct {
	// requests are what is reserved.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are what may be used at most.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// MigrationMode says what starts a migration.
//
// +kubebuilder:validation:Enum=Automatic;OnTrigger;Never
type MigrationMode string

const (
	// MigrationAutomatic migrates whenever objects may be stored in another version than the storage version.
	MigrationAutomatic MigrationMode = "Automatic"
	// MigrationOnTrigger migrates when spec.migration.trigger changes.
	MigrationOnTrigger MigrationMode = "OnTrigger"
	// MigrationNever leaves stored objects alone.
	MigrationNever MigrationMode = "Never"
)

// Migration says when stored objects are rewritten in the storage version.
type Migration struct {
	// mode says what starts a migration: Automatic whenever objects may be
	// stored in another version than the storage version, OnTrigger when
	// trigger changes, or Never.
	// +optional
	// +kubebuilder:default=Automatic
	Mode MigrationMode `json:"mode,omitempty"`

	// trigger is any text; a change starts a run, also in mode Automatic, where
	// it retries a run in which objects failed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Trigger string `json:"trigger,omitempty"`
}

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

	// plan is the compiled form of the rules.
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`

	// webhook is the state of the converter pods.
	// +optional
	Webhook *WebhookStatus `json:"webhook,omitempty"`

	// certificate is the serving certificate of the converter pods.
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`

	// migration is the latest run.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// evidence is the proof that every stored object is in one version.
	// +optional
	Evidence *StorageEvidence `json:"evidence,omitempty"`

	// armedCRD is the uid of the CustomResourceDefinition that this policy has
	// pointed at its converter, and not yet released: it may hold objects that
	// cannot be read without.
	// +optional
	ArmedCRD types.UID `json:"armedCRD,omitempty"`
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
	// storageVersion is the version in which objects are written.
	// +optional
	StorageVersion string `json:"storageVersion,omitempty"`
	// storedVersions are the versions in which objects may be stored, as the API server records it.
	// +optional
	// +listType=set
	StoredVersions []string `json:"storedVersions,omitempty"`
}

// Fidelity says what one direction of a conversion does to an object.
//
// +kubebuilder:validation:Enum=Exact;Preserved;Lossy
type Fidelity string

const (
	// FidelityExact means that every field has a place in the other version.
	FidelityExact Fidelity = "Exact"
	// FidelityPreserved means that some fields have none and are kept aside.
	FidelityPreserved Fidelity = "Preserved"
	// FidelityLossy means that some fields are dropped, as the policy says.
	FidelityLossy Fidelity = "Lossy"
)

// PlanStatus is the compiled form of the rules.
type PlanStatus struct {
	// hash identifies the compiled rules. Converter pods report the one they serve.
	// +required
	Hash string `json:"hash"`
	// verdicts say, for each spoke, what a conversion to and from the hub keeps.
	// +optional
	// +listType=map
	// +listMapKey=version
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Verdict says what the conversion between a spoke and the hub keeps.
type Verdict struct {
	// version is the spoke.
	// +required
	Version string `json:"version"`
	// toHub is the fidelity from the spoke to the hub.
	// +required
	ToHub Fidelity `json:"toHub"`
	// fromHub is the fidelity from the hub to the spoke.
	// +required
	FromHub Fidelity `json:"fromHub"`
	// preserved are the first 20 paths that one side lacks, as `<version>:<path>`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Preserved []string `json:"preserved,omitempty"`
	// dropped are the first 20 paths that a drop rule gives up, as `<version>:<path>`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Dropped []string `json:"dropped,omitempty"`
}

// WebhookStatus is the state of the converter pods.
type WebhookStatus struct {
	// desired is the number of converter pods wanted.
	// +required
	Desired int32 `json:"desired"`
	// ready is the number of converter pods that are ready with the current plan.
	// +required
	Ready int32 `json:"ready"`
	// available is ready and desired as text: "2/2".
	// +optional
	Available string `json:"available,omitempty"`
}

// CertificateStatus is the serving certificate of the converter pods.
type CertificateStatus struct {
	// notAfter is when the serving certificate expires; it is renewed well before.
	// +required
	NotAfter metav1.Time `json:"notAfter"`
	// caNotAfter is when the certificate authority in the CustomResourceDefinition expires.
	// +required
	CANotAfter metav1.Time `json:"caNotAfter"`
}

// MigrationState is the state of a migration run.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Superseded
type MigrationState string

const (
	// MigrationRunning means that the run goes on.
	MigrationRunning MigrationState = "Running"
	// MigrationSucceeded means that every object is stored in the storage version.
	MigrationSucceeded MigrationState = "Succeeded"
	// MigrationFailed means that some objects could not be rewritten, or the run could not go on.
	MigrationFailed MigrationState = "Failed"
	// MigrationSuperseded means that the CustomResourceDefinition changed under the run, which proves nothing any more.
	MigrationSuperseded MigrationState = "Superseded"
)

// MigrationStatus is the latest migration run.
type MigrationStatus struct {
	// run identifies the run: a hash of what it is pinned to.
	// +required
	Run string `json:"run"`
	// state of the run.
	// +required
	State MigrationState `json:"state"`
	// trigger is the spec.migration.trigger that the run answers.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// storageVersion that the run writes.
	// +required
	StorageVersion string `json:"storageVersion"`
	// crdUID is the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation of the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// total is the number of objects found.
	// +required
	Total int64 `json:"total"`
	// rewritten objects had other bytes in etcd before.
	// +required
	Rewritten int64 `json:"rewritten"`
	// current objects were already stored in the storage version.
	// +required
	Current int64 `json:"current"`
	// gone objects were deleted meanwhile.
	// +required
	Gone int64 `json:"gone"`
	// failed objects could not be rewritten.
	// +required
	Failed int64 `json:"failed"`
	// progress is the objects done and found as text: "1200/5000".
	// +optional
	Progress string `json:"progress,omitempty"`
	// failures are the first ten objects that failed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []MigrationFailure `json:"failures,omitempty"`
	// message says why the run could not go on.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime of the run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime of the run.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// MigrationFailure is one object that could not be rewritten.
type MigrationFailure struct {
	// object is its name, or namespace/name.
	// +required
	Object string `json:"object"`
	// message is the API server's answer.
	// +required
	Message string `json:"message"`
}

// EvidenceSource says how the evidence was obtained.
//
// +kubebuilder:validation:Enum=Migration;SingleVersion
type EvidenceSource string

const (
	// EvidenceMigration means that a run rewrote or found current every object.
	EvidenceMigration EvidenceSource = "Migration"
	// EvidenceSingleVersion means that the CustomResourceDefinition had this one version only.
	EvidenceSingleVersion EvidenceSource = "SingleVersion"
)

// StorageEvidence is the proof that every stored object is in one version. It
// holds as long as the CustomResourceDefinition keeps that storage version and
// lists no other stored version, and the operator has seen each of its changes.
type StorageEvidence struct {
	// crdUID is the CustomResourceDefinition that it speaks of.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation up to which it holds. It follows the
	// CustomResourceDefinition step by step: whoever misses a step cannot know
	// that the storage version did not move there and back.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// storageVersion is the version of every stored object.
	// +required
	StorageVersion string `json:"storageVersion"`
	// source is how it was obtained.
	// +required
	Source EvidenceSource `json:"source"`
	// run is the migration that proved it.
	// +optional
	Run string `json:"run,omitempty"`
	// objects is the number of objects seen by that run.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// time at which it was obtained.
	// +required
	Time metav1.Time `json:"time"`
}
