// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// ConvertPath is the path prefix for ConversionReviews. The hash of a ruleset follows it, and
// pods convert by that ruleset. API servers cache converted objects of each served version,
// and apply patches of clients to them. After a change of rules they would continue with
// objects that the previous rules converted. Another path is another spec, which makes them
// rebuild their caches.
const ConvertPath = "/convert"

// Converter is the active or desired converter of a policy.
//
// A converter has an identity: the hash of the compiled rules (workload.go), of the pods of
// an image (image.go), or of the address of a converter that users run (external.go). The
// webhook in the CustomResourceDefinition shows which one is active: the path identifies
// rules, the port identifies an image, and the whole address any other converter.
type Converter struct {
	// Cluster as observed, with rules that may truncate objects if the policy allows it
	// (rules.go).
	observed.Cluster
	// work that was decided and not handed out yet.
	work gate.Work

	// Wanted is the identity of the desired converter; empty if there is none, or if the
	// policy is invalid.
	Wanted string
	// Active tells that the CustomResourceDefinition converts through a converter of this
	// policy.
	Active bool
	// EverActive tells that it does, or did until another client changed it. Without the
	// converter, objects may be unreadable or incorrect.
	EverActive bool
	// Drifted tells that another client changed spec.conversion since the activation.
	Drifted bool
	// Disowned tells that another client wrote it, and that it has the operator's value all the same, such as
	// with keep-conversion.
	Disowned bool
	// Served are the identities of all converters that must answer, sorted (served.go).
	Served []string
	// Status is the converter's part of the status of the policy.
	Status Status

	kind kind
	// ruleset is the desired ruleset, compressed.
	ruleset []byte
	// rendered are the objects to deploy; renderErr is why they cannot be rendered.
	rendered  workload.Objects
	renderErr error
	// endpoint is the address of the desired image.
	endpoint observed.ImageEndpoint
}

// Status is the converter's part of a policy's status.
type Status struct {
	// ActiveCRD is the uid of the CustomResourceDefinition that converts through the converter.
	ActiveCRD types.UID
	// Active are the revisions that API servers call, or may still call.
	Active []v1alpha1.ActiveRevision
	// Revision is the desired one.
	Revision string
	Webhook  *v1alpha1.WebhookStatus
	// Released is when the operator first saw that the CustomResourceDefinition no longer
	// needs the converter.
	Released *metav1.Time
}

// Gather determines the active converter, the desired one, and the revisions that must
// be served.
func Gather(cluster observed.Cluster) *Converter {
	status := cluster.Policy.Status.DeepCopy()
	c := &Converter{Cluster: cluster, Status: Status{
		ActiveCRD: status.ActivatedCRD, Active: status.ActiveRevisions, Revision: status.Revision, Webhook: status.Webhook, Released: status.ConversionRemovedTime}}
	c.kind = c.newKind()
	if c.CRD != nil {
		c.kind.choose()
		c.Active = c.ours() && !c.adopts() && !crds.OfClaims(c.CRD)
		if c.Active {
			c.Status.ActiveCRD, c.Status.Released = c.CRD.UID, nil
		}
		c.EverActive = c.Status.ActiveCRD == c.CRD.UID
		c.Drifted, c.Disowned = c.isDrifted()
	}
	if !c.EverActive {
		c.Status.ActiveCRD, c.Status.Webhook = "", nil
	}
	c.rememberActive()
	c.serve()
	return c
}

// Upkeep keeps the pods running that the CustomResourceDefinition depends on while an
// edit of the policy has broken its rules. It waits for no gate.
func (c *Converter) Upkeep() gate.Work {
	needed := c.Rulesets() && c.Rules.Ruleset == nil && len(c.Served) > 0 && c.Certificate != nil
	if needed && c.EverActive && !c.Policy.Spec.Paused {
		if c.Fleet() != "" {
			c.store()
			return c.work.Take()
		}
		c.kind.prepare()
		c.applyWorkload()
	}
	return c.work.Take()
}

// InForce reports that the CustomResourceDefinition converts as the policy wants or wanted.
func (c *Converter) InForce() bool {
	return c.Active || c.CRD != nil && c.None() && c.Unconverted()
}

// InCharge reports that the active converter is the desired one.
func (c *Converter) InCharge() bool { return c.Active && c.Named() == c.Wanted }

// replacing reports that the desired converter replaces the active one.
func (c *Converter) replacing() bool { return c.Active && c.Named() != c.Wanted }

// Ruleset is the hash of the desired ruleset; empty if the policy has no rules.
func (c *Converter) Ruleset() string {
	if !c.Rulesets() {
		return ""
	}
	return names.RevisionOf(c.Wanted).Hash
}

// RulesetConfigMap is the name of the ConfigMap that has the desired ruleset.
func (c *Converter) RulesetConfigMap() string {
	for _, stored := range c.Revisions {
		if stored.Hash == c.Wanted && stored.ConfigMap != "" {
			return stored.ConfigMap
		}
	}
	return names.Rulesets(c.Policy.Name)
}

// ours reports that the CustomResourceDefinition names a converter of this policy: its Service,
// or one that the policy names or named.
func (c *Converter) ours() bool {
	if crds.Strategy(c.CRD) != apiextensionsv1.WebhookConverter {
		return false
	}
	if c.PointsHere() {
		return true
	}
	named := c.Named()
	return named == c.Wanted ||
		slices.ContainsFunc(c.Policy.Status.ActiveRevisions, func(active v1alpha1.ActiveRevision) bool { return active.Revision == named })
}

// adopts reports that another client activated the converter that the policy names, perhaps
// with another caBundle. The operator takes it over after it has verified the converter.
func (c *Converter) adopts() bool {
	return c.Policy.Status.ActivatedCRD != c.CRD.UID && !c.PointsHere() && !c.ConversionIsOurs() && !c.ConvertsAsWanted()
}

// Adopts reports that the operator will take over a converter that another client activated.
func (c *Converter) Adopts() bool { return c.ours() && c.adopts() }

// Named is the identity of the converter that the CustomResourceDefinition names, or empty.
func (c *Converter) Named() string {
	if crds.Strategy(c.CRD) != apiextensionsv1.WebhookConverter {
		return ""
	}
	if !c.PointsHere() {
		return identityOf(c.CRD.Spec.Conversion.Webhook.ClientConfig)
	}
	if c.NamedFleet() != "" {
		return namedRuleset(c.CRD)
	}
	port := ptr.Deref(observed.WebhookService(c.CRD).Port, workload.ServicePort)
	for _, stored := range c.Revisions {
		if stored.Image != nil && stored.Image.Port == port {
			return stored.Hash
		}
	}
	return namedRuleset(c.CRD)
}

// isDrifted reports that another client changed spec.conversion since the activation.
// managedFields show who wrote it, so that the policy need not remember what it wrote. A
// change of the policy is no drift. A write by another installation of the operator is. A
// policy without a converter has no drift: its gate of ownership handles a foreign webhook.
func (c *Converter) isDrifted() (drifted, disowned bool) {
	crd, known := c.CRD, c.Policy.Status.Drift
	if c.None() || !c.EverActive || !crd.DeletionTimestamp.IsZero() ||
		c.ours() && c.ConversionIsOurs() {
		return false, false
	}
	seen := known != nil && known.CRDGeneration == crd.Generation || c.Policy.Spec.Drift == v1alpha1.DriftTolerate
	switch {
	case !c.ConvertsAsWanted():
		return true, false
	case seen || c.Injected(): // the injector owns caBundle
		return false, false
	}
	return !c.Copied(), c.Copied()
}

// ConvertsAsWanted reports that spec.conversion, no matter who wrote it, names the desired
// converter, or the one that was active last.
func (c *Converter) ConvertsAsWanted() bool {
	var right []string
	if c.Wanted != "" {
		right = append(right, c.Wanted)
	}
	for _, active := range c.Policy.Status.ActiveRevisions {
		if active.ReplacedTime == nil {
			right = append(right, active.Revision)
		}
	}
	return slices.ContainsFunc(right, func(hash string) bool {
		return equality.Semantic.DeepEqual(c.CRD.Spec.Conversion, c.Conversion(hash))
	})
}

// Conversion is the desired spec.conversion for a converter, with the verified caBundle.
func (c *Converter) Conversion(identity string) *apiextensionsv1.CustomResourceConversion {
	client, versions := c.OwnClient(ConvertPath, identity), []string{"v1"}
	if stored := c.StoredImage(identity); identity != "" && identity == c.Wanted {
		client, versions = c.kind.client()
	} else if stored != nil {
		client, versions = c.ownClient(stored.Path, stored.Port), stored.ConversionReviewVersions
	}
	client.CABundle = c.CABundleOf(identity)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: client, ConversionReviewVersions: versions},
	}
}

// OwnClient is the client configuration for pods with rules, of the policy or of a fleet. The hash
// of the ruleset follows the prefix of the path.
func (c *Converter) OwnClient(prefix, identity string) *apiextensionsv1.WebhookClientConfig {
	revision := names.RevisionOf(identity)
	client := c.ownClient(prefix+"/"+revision.Hash, workload.ServicePort)
	if revision.Fleet != "" {
		client.Service.Name = names.Fleet(revision.Fleet)
	}
	return client
}

func (c *Converter) ownClient(path string, port int32) *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: c.Settings.Namespace, Name: names.Child(c.Policy.Name), Path: new(path), Port: new(port),
	}}
}

// ServingEndpoints serve the certificate: pods of the operator, or the endpoints of a
// converter that users run.
func (c *Converter) ServingEndpoints() []observed.Pod { return c.kind.endpoints() }

// ReadyEndpoints are the ready endpoints of the wanted converter, which API servers may call.
func (c *Converter) ReadyEndpoints() []observed.Pod {
	return slices.DeleteFunc(slices.Clone(c.kind.endpoints()), func(endpoint observed.Pod) bool {
		return !endpoint.Ready || !c.kind.serves(endpoint)
	})
}

// Name is the name of an endpoint in messages.
func (c *Converter) Name(endpoint observed.Pod) string { return c.kind.name(endpoint) }

// Answered says in a message that as many endpoints have passed their probes.
func (c *Converter) Answered(endpoints int) string {
	versions := len(crds.VersionsInUse(c.CRD))
	pairs := versions * (versions - 1)
	if c.Rules.Ruleset != nil {
		pairs = len(c.Rules.Ruleset.Pairs())
	}
	return fmt.Sprintf("%s for %d version pairs", c.kind.answered(endpoints), pairs)
}

// Convertible reports that there are two versions to convert between.
func (c *Converter) Convertible() bool {
	if c.Rules.Ruleset != nil {
		return len(c.Rules.Ruleset.Pairs()) > 0
	}
	return len(c.CRD.Spec.Versions) > 1
}

// DropUnused deletes the objects of converters that API servers no longer call and no pod uses.
func (c *Converter) DropUnused() gate.Work {
	var work gate.Work
	kept := c.kept()
	rules := c.Rulesets() && c.Fleet() == "" || slices.ContainsFunc(kept, c.isOwnRuleset)
	stores, images := false, false
	for _, stored := range c.Revisions {
		if stored.Fleet() != "" {
			continue
		}
		stores = stores || stored.Image == nil
		if stored.Image == nil {
			continue
		}
		if slices.Contains(kept, stored.Hash) {
			images = true
		} else {
			work.Do(step.DeleteDeployment{Name: names.Image(c.Policy.Name, stored.Hash)})
		}
	}
	if c.Deployed && !rules {
		work.Do(step.DeleteDeployment{Name: names.Child(c.Policy.Name)})
	}
	if stores && !rules {
		work.Do(step.DeleteRulesets{Name: names.Rulesets(c.Policy.Name)})
	}
	work.Add(c.ReleaseFleets(kept...))
	if c.Exposed && (!c.Deploys() || c.Fleet() != "") && !rules && !images {
		work.Do(step.DeleteService{Name: names.Child(c.Policy.Name)})
	}
	return work
}

// isOwnRuleset reports that a revision is a ruleset that the pods of the policy alone serve.
func (c *Converter) isOwnRuleset(identity string) bool {
	return names.RevisionOf(identity).Fleet == "" && c.StoredImage(identity) == nil && (c.Rulesets() || identity != c.Wanted)
}
