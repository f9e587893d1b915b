// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step has the things that a plan may want done to a cluster. They say what is
// wanted; the controller knows how.
package step

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// Step is one thing to do. The controller does them in order and stops at the
// first error; each can be done twice without harm.
type Step interface{ step() }

// Apply brings an object to the wanted state by server-side apply.
type Apply struct{ Object runtime.ApplyConfiguration }

// Create makes an object that must never be changed once it exists.
type Create struct{ Object runtime.ApplyConfiguration }

// IssueAuthority makes a certificate authority, unless its Secret changed since it
// was observed.
type IssueAuthority struct {
	SecretName string
	// ResourceVersion is empty where the Secret does not exist.
	ResourceVersion string
	// Next makes the one that is to follow the current one.
	Next     bool
	Lifetime time.Duration
	// Trigger is the rotationTrigger that it answers.
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
	// ResourceVersion is empty where the Secret does not exist.
	ResourceVersion string
	// Pair is what pods serve; where there is a Signer, what it issues.
	Pair     pki.KeyPair
	Signer   *pki.KeyPair
	DNSName  string
	Lifetime time.Duration
	// CABundle is what API servers must trust meanwhile.
	CABundle []byte
	// Trusted is the value of TrustedAnnotation.
	Trusted string
}

// RefreshPod makes the pod's kubelet look at the pod's Secret again.
type RefreshPod struct {
	Name string
	// Certificate is the CertificateHash that the pod is to serve.
	Certificate string
}

// SwitchCRD points the CustomResourceDefinition at the converter, in one patch,
// unless it changed since it was observed.
type SwitchCRD struct {
	Pin        Pin
	Conversion *apiextensionsv1.CustomResourceConversion
}

// EvictPod ends a converter pod that answers wrongly, so that its Deployment starts
// another, if its PodDisruptionBudget allows it.
type EvictPod struct {
	Name string
	UID  types.UID
	// Note says in words why.
	Note string
}

// RecordDrift keeps in the policy's status what was noticed and what is to be
// done about it, before it is done: what is counted afterwards may never be. It
// says so in events of the policy and of the CustomResourceDefinition.
type RecordDrift struct {
	// CRD is the uid of the CustomResourceDefinition of the policy's name.
	CRD   types.UID
	Drift v1alpha1.DriftStatus
	// Evidence as it was judged when the foreign write was seen: the repair
	// changes the CustomResourceDefinition again.
	MigrationEvidence *v1alpha1.MigrationEvidence
	// Note says it in words.
	Note string
}

// RestoreCRD sets the CustomResourceDefinition's conversion strategy to None,
// unless it changed since it was observed.
type RestoreCRD struct{ Pin Pin }

// PruneStoredVersions reduces status.storedVersions to one version, unless the
// CustomResourceDefinition changed since it was observed.
type PruneStoredVersions struct {
	Pin            Pin
	StorageVersion string
}

// Pin is the exact CustomResourceDefinition that a decision speaks of.
type Pin struct {
	Name            string
	UID             types.UID
	ResourceVersion string
}

// PinOf is the CustomResourceDefinition as it was observed.
func PinOf(crd *apiextensionsv1.CustomResourceDefinition) Pin {
	return Pin{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
}

// SuspendRun stops a migration Job's pods, or lets them go on where they stopped.
type SuspendRun struct {
	Name    string
	Suspend bool
}

// DeleteRun deletes a migration Job with its pods, and its checkpoint.
type DeleteRun struct{ Name string }

// DeleteJob deletes a migration Job with its pods, and keeps its checkpoint: the
// next Job of the run goes on from there.
type DeleteJob struct {
	Name string
	UID  types.UID
}

// DeleteRights takes rights of a policy away.
type DeleteRights struct {
	Name string
	// Kept are the ClusterRole and its binding: an administrator granted them.
	Kept bool
}

// DeleteRuleset deletes the ConfigMap of a plan that no pod serves any more.
type DeleteRuleset struct{ Name string }

// DeleteDeployment deletes converter pods that no client asks any more.
type DeleteDeployment struct{ Name string }

// DeleteSecret deletes a Secret that no one needs any more, and before it the
// Certificate of that name, which cert-manager would make another Secret for.
type DeleteSecret struct{ Name string }

// DeleteService deletes the converter's Service and PodDisruptionBudget.
type DeleteService struct{ Name string }

// DeleteAdmission deletes the webhook configuration of a policy.
type DeleteAdmission struct{ Name string }

// DeleteChildren deletes everything that was made for a policy.
type DeleteChildren struct{ Policy string }

// AddFinalizer adds the policy's finalizer.
type AddFinalizer struct{}

// RemoveFinalizer removes the policy's finalizer.
type RemoveFinalizer struct{}

// CountWrites lists the metadata of all objects and counts those that were
// written in a window.
type CountWrites struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	// Reader is the user that may list the objects.
	Reader       string
	Since, Until time.Time
	// Storage is the version in which objects were stored throughout: writes at it
	// are right. Empty where it changed: any write may be wrong then.
	Storage string
}

// Warn makes a Warning event on the policy and on the CustomResourceDefinition.
type Warn struct {
	CRD          *apiextensionsv1.CustomResourceDefinition
	Reason, Note string
}

// TakeSamples converts live objects there and back through converter pods.
type TakeSamples struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Rules   compile.Result
	// Conversion is what the CustomResourceDefinition is to be given.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Addresses are those of the ready converter pods, with their ports.
	Addresses []string
	// Reader is the user that may list and get the objects.
	Reader string
	// Most is the number of objects at most.
	Most    int
	Timeout time.Duration
	// Again tells that the CustomResourceDefinition has that conversion: an object
	// that cannot be read because of it is lost, too.
	Again bool
	// Oversized are objects that were read in a truncated form, and are to be read again.
	Oversized []v1alpha1.OversizedObject
}

// ProbeAPIServer lets an API server call the converter.
type ProbeAPIServer struct {
	Subject string
	// RulesetHash is the plan that the converter is to mark its answer with; empty for
	// a converter that knows of no such mark.
	RulesetHash string
	Conversion  *apiextensionsv1.CustomResourceConversion
	Timeout     time.Duration
}

// ClearManagedFields removes a version's name from the managedFields of all
// objects of a kind, and counts what they hold in annotations.
type ClearManagedFields struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Version string
	// Rules read what objects hold; nil where there are none.
	Rules *conversion.Ruleset
	// Discard are the fields of the version of which nothing is to be left in the
	// annotations.
	Discard []string
	// User may list and patch the objects.
	User string
}

// ReadRequests reads from an API server's metrics what was asked for.
type ReadRequests struct {
	Subject         string
	Group, Resource string
	// Since is when counts are of use that were taken then, or later.
	Since time.Time
}

// EditVersions changes fields of single versions in spec.versions, in one patch,
// unless the CustomResourceDefinition changed since it was observed.
type EditVersions struct {
	Pin     Pin
	Changes []VersionChange
	// Note says it in words.
	Note string
}

// VersionChange is one change of one version.
type VersionChange struct {
	// Index is the version's place in spec.versions, and Name its name there.
	Index int
	Name  string
	// Field that is to have the Value. Without a field the version is removed.
	Field string
	Value any
}

func (Apply) step()               {}
func (Create) step()              {}
func (IssueAuthority) step()      {}
func (PromoteAuthority) step()    {}
func (WriteCertificate) step()    {}
func (RefreshPod) step()          {}
func (EvictPod) step()            {}
func (SwitchCRD) step()           {}
func (RecordDrift) step()         {}
func (RestoreCRD) step()          {}
func (PruneStoredVersions) step() {}
func (SuspendRun) step()          {}
func (DeleteRun) step()           {}
func (DeleteJob) step()           {}
func (DeleteRights) step()        {}
func (DeleteRuleset) step()       {}
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
func (EditVersions) step()        {}
