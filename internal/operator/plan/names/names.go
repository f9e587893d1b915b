// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names has the names, labels and annotations of everything that the operator
// creates.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Labels and annotations on everything that the operator creates.
const (
	// ManagedByLabel is on every child, with the value ManagedBy.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel and the field owner of every write.
	ManagedBy = "conversion-operator"
	// InstanceLabel holds Child of the policy.
	InstanceLabel = "app.kubernetes.io/instance"
	// ComponentLabel distinguishes objects of the converter, of migrations and of verification.
	ComponentLabel = "app.kubernetes.io/component"
	// RevisionLabel is the identity of an image, on its Deployment and its pods.
	RevisionLabel = "conversion-operator.io/revision"
	// EndpointAnnotation has the port and the path of an image, on its Deployment.
	EndpointAnnotation = "conversion-operator.io/endpoint"
	// CertificateAnnotation has the CertificateHash for which a converter pod was refreshed,
	// on the pod.
	CertificateAnnotation = "conversion-operator.io/certificate"
	// RulesetAnnotation has the hash of the ruleset for which a converter pod was refreshed, and
	// the time of it, on the pod.
	RulesetAnnotation = "conversion-operator.io/ruleset"
	// SettingsAnnotation has a hash of the settings of a migration's pods, on its Job.
	SettingsAnnotation = "conversion-operator.io/settings"
	// FleetAnnotation is the name of the fleet, on everything that belongs to one.
	FleetAnnotation = "conversion-operator.io/fleet"
	// RunLabel is the identity of a migration run, on its Job and ConfigMap.
	RunLabel = "conversion-operator.io/run"
	// PolicyAnnotation is the policy's name, which may be too long for a label.
	PolicyAnnotation = "conversion-operator.io/policy"
	// ExportedAnnotation is the Service, as namespace/name, of a converter that runs without the operator, on the
	// CustomResourceDefinition that converts through it. A policy takes over from this one.
	ExportedAnnotation = "conversion-operator.io/exported-converter"
	// Finalizer keeps a policy until its CustomResourceDefinition no longer needs it.
	Finalizer = "conversion-operator.io/policy"

	// ConverterComponent marks the converter's objects.
	ConverterComponent = "converter"
	// MigrationComponent marks a migration's objects.
	MigrationComponent = "migration"
	// VerificationComponent marks the rights to read live objects.
	VerificationComponent = "verification"

	nameLabel = "app.kubernetes.io/name"
)

// maxChildName leaves room for "-migrate-" and a run's identity within the 63
// characters of a label, which a Job's name becomes.
const maxChildName = 45

// Child names everything that belongs to one policy: readable, at most 45
// characters, a DNS label, and distinct for distinct policies. It is never the name of a fleet.
func Child(policy string) string {
	sum := Hash(policy)[:8]
	readable := strings.ReplaceAll(policy, ".", "-")
	if strings.HasPrefix(readable, fleetPrefix) {
		readable = "policy-" + readable
	}
	if longest := maxChildName - len(sum) - 1; len(readable) > longest {
		readable = strings.TrimRight(readable[:longest], "-")
	}
	return readable + "-" + sum
}

// AuthoritySecret names the Secret of a policy's certificate authority.
func AuthoritySecret(policy string) string { return Child(policy) + "-ca" }

// CertificateSecret names the Secret of a policy's serving certificate.
func CertificateSecret(policy string) string { return Child(policy) + "-tls" }

// IssuedSecret names the Certificate that cert-manager is asked for, and its Secret.
func IssuedSecret(policy string) string { return Child(policy) + "-issued" }

// Rulesets names the ConfigMap of the rulesets of a policy.
func Rulesets(policy string) string { return Child(policy) + "-rulesets" }

// fleetPrefix begins the names of the objects of fleets.
const fleetPrefix = "converter-fleet-"

// Fleet names the Deployment, the Service and the PodDisruptionBudget of a fleet, and is the
// instance label of everything that belongs to it.
func Fleet(fleet string) string { return fleetPrefix + fleet }

// FleetOf returns the fleet that an instance label, or the name of a Service, belongs to; empty if
// it is none of a fleet.
func FleetOf(instance string) string {
	fleet, found := strings.CutPrefix(instance, fleetPrefix)
	if !found {
		return ""
	}
	return fleet
}

// Shards is the number of ConfigMaps with the rulesets of a fleet. Its pods mount all of them.
const Shards = 16

// Shard names one of the ConfigMaps with the rulesets of a fleet.
func Shard(fleet string, number int) string {
	return fmt.Sprintf("%s-rulesets-%02d", Fleet(fleet), number)
}

// FleetSecrets name the Secrets of a fleet: of its authority, of its serving certificate, and of
// the certificate that cert-manager is asked for.
func FleetSecrets(fleet string) (authority, serving, issued string) {
	return Fleet(fleet) + "-ca", Fleet(fleet) + "-tls", Fleet(fleet) + "-issued"
}

// FleetServerName is the DNS name that API servers verify for the Service of a fleet.
func FleetServerName(fleet, namespace string) string { return ServiceName(Fleet(fleet), namespace) }

// FleetLabels are on everything that belongs to a fleet.
func FleetLabels(fleet string) map[string]string {
	return map[string]string{nameLabel: ManagedBy, ManagedByLabel: ManagedBy, InstanceLabel: Fleet(fleet), ComponentLabel: ConverterComponent}
}

// Revision is a ruleset, at the pods of a policy or at a fleet. Its text is the hash of the ruleset,
// and a dot and the name of the fleet if there is one.
type Revision struct{ Hash, Fleet string }

// RevisionOf parses the text of a revision.
func RevisionOf(text string) Revision {
	hash, fleet, _ := strings.Cut(text, ".")
	return Revision{hash, fleet}
}

// RevisionIn is the text of a revision in the pods of a fleet, or in those of a policy alone if fleet is empty.
func RevisionIn(hash, fleet string) string { return Revision{hash, fleet}.String() }

func (r Revision) String() string {
	if r.Fleet == "" {
		return r.Hash
	}
	return r.Hash + "." + r.Fleet
}

// Image names the Deployment of the pods of one image.
func Image(policy, identity string) string { return Child(policy) + "-image-" + identity }

// ExternalCertificateSecret names the Secret of a serving certificate for a
// converter that users run. The operator's own pods have another one, which they still need
// for a while after the policy has changed to such a converter.
func ExternalCertificateSecret(policy string) string { return Child(policy) + "-external-tls" }

// Run names the Job and the ConfigMap of a migration run.
func Run(policy, run string) string { return Child(policy) + "-migrate-" + run }

// MigrationRights names the ServiceAccount, roles and bindings of a policy's migrations.
func MigrationRights(policy string) string { return Child(policy) + "-migrate" }

// ofRights matches the names of MigrationRights, ReadRights and CleanRights.
var ofRights = regexp.MustCompile(`-[0-9a-f]{8}-(migrate|read|clear)$`)

// HasRights reports that a ServiceAccount of this name may have the rights of the operator to the
// objects of a policy.
func HasRights(account string) bool { return ofRights.MatchString(account) }

// ServerName is the DNS name that the API server verifies for a Service.
func ServerName(policy, namespace string) string {
	return ServiceName(Child(policy), namespace)
}

// ServiceName is the DNS name that API servers verify for a Service.
func ServiceName(service, namespace string) string { return service + "." + namespace + ".svc" }

// Labels are on every child of a policy.
func Labels(policy, component string) map[string]string {
	return map[string]string{
		nameLabel:      ManagedBy,
		ManagedByLabel: ManagedBy,
		InstanceLabel:  Child(policy),
		ComponentLabel: component,
	}
}

// RunID identifies a migration run by the state that it is pinned to. Every change of the
// CustomResourceDefinition's spec needs another run, even one that is reverted.
func RunID(crd *apiextensionsv1.CustomResourceDefinition, storageVersion, trigger string) string {
	return Hash(string(crd.UID), strconv.FormatInt(crd.Generation, 10), storageVersion, trigger)[:8]
}

// Hash is the SHA-256 of some texts, in hexadecimal: 64 characters.
func Hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Admission names the webhook configuration of a policy. It is cluster-scoped.
func Admission(policy string) string { return "conversion-operator-" + Child(policy) }

// ReadRights names the ClusterRole and the binding that allow to read the objects of a
// policy's kind, and the ServiceAccount that they are for. That ServiceAccount does not
// exist: the manager impersonates it, and no other client can authenticate as it.
func ReadRights(policy string) string { return Child(policy) + "-read" }

// Reader is the user that may read the objects of a policy's kind.
func Reader(policy, namespace string) string { return serviceAccount(namespace, ReadRights(policy)) }

// CleanRights names the ClusterRole and the binding that allow to patch the objects of a
// policy's kind, and the ServiceAccount that they are for. As with ReadRights, that
// ServiceAccount does not exist.
func CleanRights(policy string) string { return Child(policy) + "-clear" }

// Cleaner is the user that may patch the objects of a policy's kind.
func Cleaner(policy, namespace string) string { return serviceAccount(namespace, CleanRights(policy)) }

// DependentsAccount is the name, in config/components/dependents, of the ServiceAccount that may
// search for dependents. A kustomization may change it.
const DependentsAccount = "conversion-operator-dependents"

// Searcher is the user of that ServiceAccount.
func Searcher(account, namespace string) string { return serviceAccount(namespace, account) }

func serviceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
