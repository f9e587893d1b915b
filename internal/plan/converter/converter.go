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
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// ConvertPath is where converter pods answer ConversionReviews: the hash of a
// plan follows it, and they answer by that plan. API servers keep objects
// of each served version in memory as they were converted, and write what
// clients send on top of those: after a change of the rules they would go on
// from what the previous rules had made. Another path is another spec, and
// makes them rebuild that memory.
const ConvertPath = "/convert"

// Converter is what converts, or is to convert, for a policy.
//
// What converts has an identity: the hash of the compiled rules (workload.go), of the
// pods of an image (image.go), or of where a converter is that users run
// (external.go). The webhook that the CustomResourceDefinition names tells which one it
// is: rules by their path, images by their port, and others by all of it.
type Converter struct {
	// Cluster as it was observed. Its rules may truncate what the policy lets them (size.go).
	observed.Cluster
	// work that was decided and not handed out yet.
	work gate.Work

	// Wanted is the identity of the converter that the policy wants, empty where there is
	// none, or the policy cannot be followed.
	Wanted string
	// Active tells that the CustomResourceDefinition converts through a converter of this
	// policy.
	Active bool
	// EverActive tells that it does, or did until another client changed it: objects may be
	// unreadable, or wrong, without the converter.
	EverActive bool
	// Drifted tells that another client changed it since.
	Drifted bool
	// Served are the identities of all converters that must answer, sorted (served.go).
	Served []string
	// Status is the converter's part of the policy's.
	Status Status

	kind kind
	// ruleset is the wanted compiled rules, as text.
	ruleset string
	// rendered is what to deploy, and renderErr why it cannot be.
	rendered  workload
	renderErr error
	// endpoint is where the wanted image is to be found.
	endpoint observed.ImageEndpoint
}

// Status is the converter's part of a policy's status.
type Status struct {
	// ActiveCRD is the uid of the CustomResourceDefinition that converts through it.
	ActiveCRD types.UID
	// Active are the converters that API servers call, or may still call.
	Active  []v1alpha1.ActiveRevision
	Rules   *v1alpha1.ConverterStatus
	Webhook *v1alpha1.WebhookStatus
	// Released is when the CustomResourceDefinition was first seen not to need it any more.
	Released *metav1.Time
}

// Gather determines the active converter, the desired one, and the revisions that must
// be served.
func Gather(cluster observed.Cluster) *Converter {
	status := cluster.Policy.Status.DeepCopy()
	c := &Converter{Cluster: cluster, Status: Status{
		ActiveCRD: status.ActivatedCRD, Active: status.ActiveRevisions, Rules: status.Converter, Webhook: status.Webhook, Released: status.ConversionRemovedTime}}
	c.kind = c.newKind()
	if c.CRD != nil {
		c.kind.choose()
		c.Active = c.ours() && !c.adopts()
		if c.Active {
			c.Status.ActiveCRD, c.Status.Released = c.CRD.UID, nil
		}
		c.EverActive = c.Status.ActiveCRD == c.CRD.UID
		c.Drifted = c.isDrifted()
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
	if needed && c.EverActive && !c.Policy.Spec.Suspend {
		c.kind.prepare()
		c.applyWorkload()
	}
	return c.work.Take()
}

// InForce tells that the CustomResourceDefinition converts as the policy wants it, or by
// what the policy wanted before.
func (c *Converter) InForce() bool {
	return c.Active || c.CRD != nil && c.None() && c.Unconverted()
}

// InCharge tells that what API servers call is what the policy wants.
func (c *Converter) InCharge() bool { return c.Active && c.Named() == c.Wanted }

// replacing reports whether the CustomResourceDefinition is to name another converter.
func (c *Converter) replacing() bool { return c.Active && c.Named() != c.Wanted }

// Ruleset is the hash of the rules that are wanted, empty where the policy has none.
func (c *Converter) Ruleset() string {
	if !c.Rulesets() {
		return ""
	}
	return c.Wanted
}

// ours tells that the CustomResourceDefinition names a converter of this policy:
// the operator's own Service, or one that the policy names, or named.
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

// adopts tells that the CustomResourceDefinition names the converter that the policy
// names, and another client wrote that, with another caBundle perhaps: it is taken
// over when it is proven, and not before.
func (c *Converter) adopts() bool {
	return c.Policy.Status.ActivatedCRD != c.CRD.UID && !c.PointsHere() && !crds.ConversionIsBy(c.CRD, names.ManagedBy) && !c.ConvertsAsWanted()
}

// Adopts tells that it takes over a converter which another client has activated.
func (c *Converter) Adopts() bool { return c.ours() && c.adopts() }

// Named is the identity of the converter that the CustomResourceDefinition names,
// or empty.
func (c *Converter) Named() string {
	if crds.Strategy(c.CRD) != apiextensionsv1.WebhookConverter {
		return ""
	}
	if !c.PointsHere() {
		return identityOf(c.CRD.Spec.Conversion.Webhook.ClientConfig)
	}
	port := ptr.Deref(observed.WebhookService(c.CRD).Port, servicePort)
	for _, stored := range c.Revisions {
		if stored.Image != nil && stored.Image.Port == port {
			return stored.Hash
		}
	}
	return namedRuleset(c.CRD)
}

// isDrifted reports whether another client wrote spec.conversion since the policy
// did. It needs no memory of what the policy wrote: the API server keeps account
// of who wrote what. A change of the policy's own mind is no drift; what another
// installation of the operator applied is, and may be all that is left of it. Where
// nothing is to convert, nothing can drift: a webhook of a client's is one that was
// not asked for.
func (c *Converter) isDrifted() bool {
	crd, known := c.CRD, c.Policy.Status.Drift
	if c.None() || !c.EverActive || !crd.DeletionTimestamp.IsZero() ||
		c.ours() && crds.ConversionIsBy(crd, names.ManagedBy) {
		return false
	}
	seen := known != nil && known.CRDGeneration == crd.Generation
	if c.Injected() && c.ConvertsAsWanted() {
		return false // caBundle is another client's to write
	}
	return !c.ConvertsAsWanted() || !seen && c.Policy.Spec.Drift != v1alpha1.DriftReport
}

// ConvertsAsWanted tells that spec.conversion, no matter who wrote it, names the converter that it is
// to name, or the one that it named before another client wrote.
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

// Conversion is spec.conversion as it must be, with the bytes that were proven.
func (c *Converter) Conversion(identity string) *apiextensionsv1.CustomResourceConversion {
	client, versions := c.OwnClient(ConvertPath+"/"+identity), []string{"v1"}
	if stored := c.StoredImage(identity); identity != "" && identity == c.Wanted {
		client, versions = c.kind.client()
	} else if stored != nil {
		client, versions = c.ownClient(stored.Path, stored.Port), stored.ConversionReviewVersions
	}
	client.CABundle = c.CABundle()
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: client, ConversionReviewVersions: versions},
	}
}

// OwnClient is how API servers call the pods with rules.
func (c *Converter) OwnClient(path string) *apiextensionsv1.WebhookClientConfig {
	return c.ownClient(path, servicePort)
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

// Convertible reports whether there are two versions to convert between.
func (c *Converter) Convertible() bool {
	if c.Rules.Ruleset != nil {
		return len(c.Rules.Ruleset.Pairs()) > 0
	}
	return len(c.CRD.Spec.Versions) > 1
}

// DropUnused deletes what no API server asks for any more, and no pod needs.
func (c *Converter) DropUnused() gate.Work {
	var work gate.Work
	rules := c.Rulesets()
	for _, stored := range c.Revisions {
		carried := slices.Contains(c.Served, stored.Hash)
		used := slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return slices.Contains(pod.Revisions, stored.Hash) })
		switch {
		case stored.Image != nil && !carried:
			work.Do(step.DeleteDeployment{Name: names.Image(c.Policy.Name, stored.Hash)})
		case stored.Image == nil && !carried && !used:
			work.Do(step.DeleteRuleset{Name: names.Ruleset(c.Policy.Name, stored.Hash)})
		}
		rules = rules || stored.Image == nil && carried
	}
	if c.Deployed && !rules {
		work.Do(step.DeleteDeployment{Name: names.Child(c.Policy.Name)})
	}
	if c.Exposed && !c.Deploys() && !slices.ContainsFunc(c.Revisions, func(stored observed.StoredRevision) bool { return slices.Contains(c.Served, stored.Hash) }) {
		work.Do(step.DeleteService{Name: names.Child(c.Policy.Name)})
	}
	return work
}
