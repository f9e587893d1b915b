// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step has the steps that a plan may contain. A step says what must change in the
// cluster; the package controllers knows how.
package step

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
)

// Step is one change. The controller carries out steps in order and stops at the first
// error. Every step is idempotent.
type Step interface{ step() }

// Apply applies an object server-side.
type Apply struct{ Object runtime.ApplyConfiguration }

// Create creates an object, and leaves one that exists unchanged.
type Create struct{ Object runtime.ApplyConfiguration }

// IssueAuthority issues a certificate authority, unless its Secret changed since it was
// observed.
type IssueAuthority struct {
	SecretName string
	// ResourceVersion is empty if the Secret does not exist.
	ResourceVersion string
	// Next issues the successor of the current authority.
	Next     bool
	Lifetime time.Duration
	// Trigger is the rotationTrigger of the policy that asked for it.
	Trigger string
}

// PromoteAuthority makes the next authority the current one, unless the Secret
// changed since it was observed.
type PromoteAuthority struct {
	SecretName      string
	ResourceVersion string
	Authority       pki.KeyPair
}

// WriteCertificate writes the Secret that converter pods mount, unless it changed
// since it was observed.
type WriteCertificate struct {
	SecretName string
	// ResourceVersion is empty if the Secret does not exist.
	ResourceVersion string
	// Pair is the serving certificate. If there is a Signer, a new one is issued instead.
	Pair     pki.KeyPair
	Signer   *pki.KeyPair
	DNSName  string
	Lifetime time.Duration
	// CABundle has the authorities that API servers must trust while pods serve this.
	CABundle []byte
	// Trusted is the value of TrustedAnnotation.
	Trusted string
}

// StoreRulesets changes which rulesets of a policy are in the shards of a fleet. It changes no
// ruleset of another policy.
type StoreRulesets struct {
	Fleet string
	// Owner is names.Child of the policy.
	Owner       string
	Add, Remove []StoredRuleset
}

// StoredRuleset is a ruleset in a ConfigMap, as conversion.Store compressed it.
type StoredRuleset struct {
	ConfigMap, Hash string
	Stored          []byte
}

// AwaitRuleset has the pods of a fleet load a ruleset, in the background. The policy is reconciled
// again when all ready pods have it.
type AwaitRuleset struct{ Fleet, Hash string }

// CreateFleet creates a ConverterFleet without settings, and leaves one that exists unchanged.
type CreateFleet struct{ Name string }

// RefreshPod makes the kubelet of a pod read the Secret and the ConfigMap that the pod mounts,
// by a change of an annotation of the pod.
type RefreshPod struct {
	Name string
	// Annotation is names.CertificateAnnotation or names.RulesetAnnotation, and Value says what
	// the pod must serve.
	Annotation, Value string
}

// SwitchCRD points the CustomResourceDefinition at the converter, in one patch of it or of the
// CompositeResourceDefinition that Crossplane generates it from, unless that object changed since it
// was observed.
type SwitchCRD struct {
	Pin        Pin
	Conversion *apiextensionsv1.CustomResourceConversion
	// MayWait tells that only caBundle changes, and that conversions work without the change. Many
	// policies may want one at the same time.
	MayWait bool
}

// EvictPod evicts a converter pod that answers incorrectly, or one of several that are all on one
// node, if its PodDisruptionBudget allows it. The Deployment starts another one.
type EvictPod struct {
	Name string
	UID  types.UID
	// Note is the reason, for an event.
	Note string
}

// RecordDrift writes drift and the answer to it into the policy's status before the answer
// is carried out, so that no repair goes uncounted. It emits events for the policy and the
// CustomResourceDefinition.
type RecordDrift struct {
	// CRD is the uid of the CustomResourceDefinition of the policy's name.
	CRD   types.UID
	Drift v1alpha1.DriftStatus
	// Note is the text of the events.
	Note string
}

// RestoreCRD sets the CustomResourceDefinition's conversion strategy to None, in it or in the
// CompositeResourceDefinition, unless that object changed since it was observed.
type RestoreCRD struct{ Pin Pin }

// PruneStoredVersions reduces status.storedVersions to one version, unless the
// CustomResourceDefinition changed since it was observed.
type PruneStoredVersions struct {
	Pin            Pin
	StorageVersion string
}

// AddStorageVersion has the API server add the storage version to status.storedVersions, unless the
// CustomResourceDefinition changed since it was observed.
type AddStorageVersion struct{ Pin Pin }

// Pin identifies the exact CustomResourceDefinition that a decision is about.
type Pin struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Composite is the kind of the object if it is a CompositeResourceDefinition of Crossplane; empty
	// for a CustomResourceDefinition.
	Composite schema.GroupVersionKind
}

// PinOf returns the Pin of an observed CustomResourceDefinition.
func PinOf(crd *apiextensionsv1.CustomResourceDefinition) Pin {
	return Pin{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
}

// SuspendRun suspends or resumes a migration Job.
type SuspendRun struct {
	Name    string
	UID     types.UID
	Suspend bool
}

// DeleteRun deletes a migration Job with its pods, and its checkpoint.
type DeleteRun struct{ Name string }

// DeleteJob deletes a migration Job with its pods, and keeps its checkpoint, from which the
// next Job of the run continues.
type DeleteJob struct {
	Name string
	UID  types.UID
}

// DeleteRights deletes the ClusterRole of a name and its binding.
type DeleteRights struct {
	Name string
	// OfRuns also deletes what pods of migrations have: the ServiceAccount, its Role and FlowSchema.
	OfRuns bool
	// KeepClusterRole leaves the ClusterRole and its binding, because an administrator granted them.
	KeepClusterRole bool
	// KeepAccount leaves the ServiceAccount, because an administrator gave pull secrets to it.
	KeepAccount bool
}

// DeleteRulesets deletes a ConfigMap of rulesets that no pod serves any more.
type DeleteRulesets struct{ Name string }

// DeleteDeployment deletes converter pods that no API server calls any more.
type DeleteDeployment struct{ Name string }

// DeleteSecret deletes a Secret that nothing uses. Before that it deletes the Certificate of
// that name, for which cert-manager would create the Secret again.
type DeleteSecret struct{ Name string }

// DeleteService deletes the converter's Service and PodDisruptionBudget.
type DeleteService struct{ Name string }

// DeleteAdmission deletes the webhook configuration of a policy.
type DeleteAdmission struct{ Name string }

// DeleteChildren deletes everything that the operator created for a policy or a fleet: the objects with
// this instance label.
type DeleteChildren struct{ Instance string }

// AddFinalizer adds the policy's finalizer.
type AddFinalizer struct{}

// RemoveFinalizer removes the policy's finalizer.
type RemoveFinalizer struct{}

// CountWrites lists the metadata of all objects in the background, and counts those that
// clients wrote in a window.
type CountWrites struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	// Reader is the user that may list the objects.
	Reader       string
	Since, Until time.Time
	// After is the resourceVersion of the CustomResourceDefinition at the begin of the window; empty if
	// that is unknown.
	After string
	// Storage is the version in which objects were stored during the whole window. Writes at
	// this version need no conversion. Empty if it changed.
	Storage string
}

// Warn emits a Warning event for the policy and the CustomResourceDefinition.
type Warn struct {
	CRD          *apiextensionsv1.CustomResourceDefinition
	Reason, Note string
}

// TakeSamples converts live objects to another version and back through converter pods, in
// the background.
type TakeSamples struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Rules   compile.Result
	// Conversion is the future spec.conversion of the CustomResourceDefinition.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Addresses are those of the ready converter pods, with their ports.
	Addresses []string
	// Reader is the user that may list and get the objects.
	Reader string
	// Most is the maximum number of objects.
	Most    int
	Timeout time.Duration
	// Again tells that this conversion is active already. An object that cannot be read
	// because of it counts as lost.
	Again bool
	// Oversized are objects that were truncated, and that must be read again.
	Oversized []v1alpha1.OversizedObject
}

// ProbeAPIServer makes an API server call the converter, in the background.
type ProbeAPIServer struct {
	Subject string
	// RulesetHash is the ruleset that the converter must name in its answer; empty for a
	// converter that names none.
	RulesetHash string
	Conversion  *apiextensionsv1.CustomResourceConversion
	Timeout     time.Duration
	// Service identifies the Service, the port and caBundle if other policies have them, too. An API
	// server that has reached a pod for one of them reaches it for all.
	Service string
}

// ClearManagedFields removes a version from the managedFields of all objects of a kind, in
// the background, and counts the preserved data in their annotations.
type ClearManagedFields struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Version string
	// Rules read the preserved data; nil if the policy has none.
	Rules *conversion.Ruleset
	// Discard are the fields of the version whose preserved values are removed.
	Discard []string
	// User is the user that may list and patch the objects.
	User string
}

// ReadRequests reads from the metrics of an API server how often clients requested each
// version, in the background.
type ReadRequests struct {
	Subject         string
	Group, Resource string
	// Since is the time before which an earlier result is too old.
	Since time.Time
}

// FindDependents searches the cluster for objects that name versions of a CustomResourceDefinition,
// in the background.
type FindDependents struct {
	Subject string
	// CRD is its name.
	CRD      string
	Versions []string
	// User is the user that may list all objects.
	User string
}

// EditVersions changes fields of single versions in spec.versions, in one patch, unless the
// CustomResourceDefinition changed since it was observed.
type EditVersions struct {
	Pin     Pin
	Changes []VersionChange
	// Note describes the change, for an event.
	Note string
}

// VersionChange is one change of one version.
type VersionChange struct {
	// Index is the index of the version in spec.versions, and Name its name there.
	Index int
	Name  string
	// Field gets the Value. Without a field, the version is removed.
	Field string
	Value any
}

// IsCheck reports that a step changes nothing that lasts.
func IsCheck(s Step) bool {
	switch s.(type) {
	case AwaitRuleset, RefreshPod, TakeSamples, ProbeAPIServer, CountWrites, ReadRequests, FindDependents:
		return true
	}
	return false
}

func (Apply) step()               {}
func (Create) step()              {}
func (IssueAuthority) step()      {}
func (PromoteAuthority) step()    {}
func (WriteCertificate) step()    {}
func (StoreRulesets) step()       {}
func (AwaitRuleset) step()        {}
func (CreateFleet) step()         {}
func (RefreshPod) step()          {}
func (EvictPod) step()            {}
func (SwitchCRD) step()           {}
func (RecordDrift) step()         {}
func (RestoreCRD) step()          {}
func (PruneStoredVersions) step() {}
func (AddStorageVersion) step()   {}
func (SuspendRun) step()          {}
func (DeleteRun) step()           {}
func (DeleteJob) step()           {}
func (DeleteRights) step()        {}
func (DeleteRulesets) step()      {}
func (DeleteDeployment) step()    {}
func (DeleteSecret) step()        {}
func (DeleteService) step()       {}
func (DeleteAdmission) step()     {}
func (DeleteChildren) step()      {}
func (AddFinalizer) step()        {}
func (RemoveFinalizer) step()     {}
func (CountWrites) step()         {}
func (Warn) step()                {}
func (TakeSamples) step()         {}
func (ProbeAPIServer) step()      {}
func (ClearManagedFields) step()  {}
func (ReadRequests) step()        {}
func (FindDependents) step()      {}
func (EditVersions) step()        {}
