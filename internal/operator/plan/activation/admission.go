// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

const (
	// AdmitPath is the path prefix for AdmissionReviews. The hash of a ruleset follows it.
	AdmitPath = "/admit"
	// admissionTimeout limits how long a write waits for a converter pod, in seconds. The
	// conversion of an object of 1 MB takes less than 0.1 s.
	admissionTimeout = 5
	// maxAdmissionDelay is the time in which all API servers see a webhook configuration, which they
	// all watch, unless the propagation delay is shorter.
	maxAdmissionDelay = 10 * time.Second
	// sinceAnnotation has a hash of the webhooks of a configuration, without caBundle, and the
	// time since when they are unchanged.
	sinceAnnotation = "conversion-operator.io/since"
)

// Suffixes of the names of webhooks. The hash of a ruleset precedes them.
const (
	// admissionSuffix is the end of all names.
	admissionSuffix = ".conversion-operator.io"
	// truncatedSuffix names the webhook that refuses writes of truncated objects.
	truncatedSuffix = ".truncated" + admissionSuffix
	// sizeSuffix names the webhook that refuses large objects at versions that are converted
	// before they are stored, and storedSizeSuffix the one for the storage version.
	sizeSuffix       = ".size" + admissionSuffix
	storedSizeSuffix = ".stored-size" + admissionSuffix
)

// AdmissionClient is the client configuration of a ruleset for AdmissionReviews.
type AdmissionClient struct {
	// Hash identifies the ruleset, and the fleet that serves it if one does.
	Hash   string
	Client admissionregistrationv1.WebhookClientConfig
	// Condition is a CEL expression. Objects for which it is false cannot be too large.
	Condition string
}

// AdmissionConfiguration makes API servers refuse objects that do not fit at every version. It
// has webhooks for each ruleset that an API server may convert by. Storage is the storage
// version; empty while it changes.
//
// If no converter answers, API servers refuse a write that might store a truncated object: one
// of a truncated object, and one that is converted before it is stored, which fails without a
// converter anyway. They accept other writes at the storage version, so that none of these
// depends on a converter, and readers at other versions get a truncated object.
func AdmissionConfiguration(policy string, crd *apiextensionsv1.CustomResourceDefinition, storage string, clients []AdmissionClient) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{
			Name: names.Admission(policy), Labels: names.Labels(policy, names.ConverterComponent), Annotations: map[string]string{names.PolicyAnnotation: policy},
		},
	}
	if len(clients) == 0 {
		return configuration
	}
	var all, converted, stored []string
	for i := range crd.Spec.Versions {
		name := crd.Spec.Versions[i].Name
		all = append(all, name)
		if name == storage {
			stored = append(stored, name)
		} else {
			converted = append(converted, name)
		}
	}
	written := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	add := func(webhook admissionregistrationv1.ValidatingWebhook) {
		if len(webhook.Rules[0].APIVersions) > 0 {
			configuration.Webhooks = append(configuration.Webhooks, webhook)
		}
	}
	for _, client := range clients {
		add(admissionWebhook(&client, truncatedSuffix, compile.MarkedCondition, admissionregistrationv1.Fail,
			admissionRule(crd, all, append(written, admissionregistrationv1.Delete))))
		add(admissionWebhook(&client, sizeSuffix, client.Condition, admissionregistrationv1.Fail, admissionRule(crd, converted, written)))
		add(admissionWebhook(&client, storedSizeSuffix, client.Condition, admissionregistrationv1.Ignore, admissionRule(crd, stored, written)))
	}
	return configuration
}

func admissionWebhook(client *AdmissionClient, suffix, condition string, unanswered admissionregistrationv1.FailurePolicyType,
	rule admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         client.Hash + suffix,
		ClientConfig: *client.Client.DeepCopy(),
		Rules:        []admissionregistrationv1.RuleWithOperations{rule},
		// With Equivalent, an API server would send the converted object. Only the object as
		// the client wrote it shows what its conversion loses.
		MatchPolicy:             new(admissionregistrationv1.Exact),
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "worth-asking", Expression: condition}},
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		FailurePolicy:           &unanswered,
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(admissionTimeout)),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// admissionRule matches the resource and its status at some versions. An update of the status
// writes the whole object, which was read at the same version, and so does a deletion that
// waits for finalizers. A scale is an object of another kind.
func admissionRule(crd *apiextensionsv1.CustomResourceDefinition, versions []string, operations []admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{crd.Spec.Group}, APIVersions: versions,
			Resources: []string{crd.Spec.Names.Plural, crd.Spec.Names.Plural + "/status"},
			Scope:     new(admissionregistrationv1.ScopeType(crd.Spec.Scope)),
		},
	}
}

// admissionDelay is the time in which all API servers see a webhook configuration.
func (a *Activation) admissionDelay() time.Duration {
	return min(maxAdmissionDelay, a.Settings.PropagationDelay)
}

// limitsSize reports that the policy needs the webhook configuration. With overflow: Drop it
// keeps an existing one, because clients may still have truncated objects.
func (a *Activation) limitsSize() bool {
	return a.converter.LimitsSize() || a.converter.MayLimitSize() && a.Admission != nil
}

// refuseTooLarge makes API servers refuse objects that are too large for the desired ruleset,
// and for those that they may still convert by. The storage version may change when all API
// servers have seen the webhook configuration, and so may spec.conversion, unless no truncated
// object can be stored; until then, refuseTooLarge returns an outcome that stops.
func (a *Activation) refuseTooLarge() gate.Outcome {
	if !a.limitsSize() {
		return gate.Outcome{}
	}
	wanted := a.admission(a.admittedRulesets())
	sum := sumOfWebhooks(wanted)
	before, since := a.admissionSince()
	left := since.Add(a.admissionDelay()).Sub(a.Now)
	switch {
	case a.covered(wanted.Webhooks) && !since.IsZero():
		a.leaveOut(wanted, sum, since)
		if left <= 0 || a.storesOneVersion() {
			return gate.Outcome{}
		}
		a.work.Recheck(left)
		return gate.Waiting(v1alpha1.ReasonConfiguring, "waiting until all API servers refuse objects that are too large to convert")
	case before == sum && left > 0: // another client keeps changing it
		a.work.Recheck(left)
		return gate.Waiting(v1alpha1.ReasonAdmissionDrifted, a.whatAdmissionDrifted()+" again: restoring it in a few seconds; stop that writer from changing it")
	}
	says := gate.Waiting(v1alpha1.ReasonConfiguring, "making API servers refuse objects that are too large to convert")
	if before == sum || a.Admission == nil && a.converter.InCharge() && a.repair == "" {
		says = gate.Waiting(v1alpha1.ReasonAdmissionDrifted, a.whatAdmissionDrifted()+": restoring it")
	}
	a.applyAdmission(wanted, sum, a.Now)
	a.work.Recheck(a.admissionDelay())
	return says
}

// storesOneVersion reports that every object is stored at the storage version, which the policy
// does not change. Then a client that reads an object at that version gets it as it is stored, and
// a write at another version is converted on its way to etcd, where the converter refuses a
// truncated object. So no truncated object can be stored, whether API servers have seen the
// webhook configuration or not.
func (a *Activation) storesOneVersion() bool {
	promoted := string(a.Policy.Spec.StorageVersion)
	return a.evidence != nil && (promoted == "" || promoted == crds.StorageVersion(a.CRD))
}

// admittedRulesets are the rulesets that every ready converter pod serves, or that is active.
func (a *Activation) admittedRulesets() []string {
	return slices.DeleteFunc(a.converter.ServedRules(), func(revision string) bool {
		lacks := func(pod observed.Pod) bool {
			return pod.Ready && !pod.Image && !slices.Contains(pod.Revisions, revision)
		}
		unserved := !a.converter.Answers(revision) || slices.ContainsFunc(a.PodsOf(names.RevisionOf(revision).Fleet), lacks)
		return revision != a.converter.Named() && unserved
	})
}

// leaveOut removes webhooks that are no longer needed. The others stay unchanged.
func (a *Activation) leaveOut(wanted *admissionregistrationv1.ValidatingWebhookConfiguration, sum string, since time.Time) {
	if !equality.Semantic.DeepEqual(untrusting(ownWebhooks(a.Admission)), untrusting(wanted.Webhooks)) {
		a.applyAdmission(wanted, sum, since)
	} else {
		a.updateAdmissionCABundle()
	}
}

// whatAdmissionDrifted says what another client did to the webhook configuration.
func (a *Activation) whatAdmissionDrifted() string {
	did := "changed"
	if a.Admission == nil {
		did = "deleted"
	}
	return "another client " + did + " ValidatingWebhookConfiguration " + names.Admission(a.Policy.Name) +
		", which makes API servers refuse objects that are too large to convert"
}

// applyAdmission writes the webhook configuration, with the time since when it is unchanged.
func (a *Activation) applyAdmission(wanted *admissionregistrationv1.ValidatingWebhookConfiguration, sum string, since time.Time) {
	wanted.Annotations[sinceAnnotation] = sum + " " + since.UTC().Format(time.RFC3339)
	if object := AdmissionApply(wanted); object != nil {
		a.Admission = wanted
		a.work.Do(step.Apply{Object: object})
	}
}

// updateAdmissionCABundle makes API servers verify converter pods by the caBundle that they
// have for conversions. It changes nothing else, and waits for no gate, because
// certificates do not wait either.
func (a *Activation) updateAdmissionCABundle() {
	sum, since := a.admissionSince()
	if since.IsZero() || len(a.CABundle()) == 0 {
		return
	}
	wanted := AdmissionConfiguration(a.Policy.Name, nil, "", nil)
	differs := false
	for _, webhook := range ownWebhooks(a.Admission) {
		service := webhook.ClientConfig.Service
		if service == nil || service.Namespace != a.Settings.Namespace {
			return // of an operator in another namespace; refuseTooLarge replaces it
		}
		bundle := a.converter.CABundleOf(names.RevisionIn("", names.FleetOf(service.Name)))
		if len(bundle) > 0 && !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			webhook.ClientConfig.CABundle, differs = bundle, true
		}
		wanted.Webhooks = append(wanted.Webhooks, webhook)
	}
	if differs {
		a.applyAdmission(wanted, sum, since)
	}
}

// admission is the desired webhook configuration for some rulesets. A previous ruleset keeps its
// condition.
func (a *Activation) admission(hashes []string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	var clients []AdmissionClient
	for _, hash := range hashes {
		service := a.converter.OwnClient(AdmitPath, hash).Service
		clients = append(clients, AdmissionClient{Hash: hash, Condition: a.conditionOf(hash), Client: admissionregistrationv1.WebhookClientConfig{
			CABundle: a.converter.CABundleOf(hash),
			Service: &admissionregistrationv1.ServiceReference{
				Namespace: service.Namespace, Name: service.Name, Path: service.Path, Port: service.Port,
			},
		}})
	}
	storage := crds.StorageVersion(a.CRD)
	if promoted := string(a.Policy.Spec.StorageVersion); promoted != "" && promoted != storage {
		storage = "" // it will change
	}
	return AdmissionConfiguration(a.Policy.Name, a.CRD, storage, clients)
}

// conditionOf is the condition of the objects that a ruleset must admit.
func (a *Activation) conditionOf(hash string) string {
	if hash != a.converter.Wanted && a.Admission != nil {
		for _, webhook := range a.Admission.Webhooks {
			asks := webhook.Name == hash+sizeSuffix || webhook.Name == hash+storedSizeSuffix
			if asks && len(webhook.MatchConditions) == 1 {
				return webhook.MatchConditions[0].Expression
			}
		}
	}
	return a.Rules.AdmissionCondition
}

// covered reports that the webhook configuration covers all these webhooks, without regard to caBundle.
func (a *Activation) covered(wanted []admissionregistrationv1.ValidatingWebhook) bool {
	if a.Admission == nil {
		return false
	}
	there := untrusting(a.Admission.Webhooks)
	return !slices.ContainsFunc(untrusting(wanted), func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return !slices.ContainsFunc(there, func(one admissionregistrationv1.ValidatingWebhook) bool { return covers(one, webhook) })
	})
}

// covers reports that an existing webhook refuses everything that the wanted one refuses, and
// perhaps more: at other versions, or if no converter answers.
func covers(there, wanted admissionregistrationv1.ValidatingWebhook) bool {
	absent := func(version string) bool { return !slices.Contains(there.Rules[0].APIVersions, version) }
	if len(there.Rules) != 1 || slices.ContainsFunc(wanted.Rules[0].APIVersions, absent) {
		return false
	}
	there.Rules = slices.Clone(there.Rules)
	there.Name, there.Rules[0].APIVersions = wanted.Name, wanted.Rules[0].APIVersions
	if ptr.Deref(there.FailurePolicy, "") == admissionregistrationv1.Fail {
		there.FailurePolicy = wanted.FailurePolicy
	}
	return equality.Semantic.DeepEqual(there, wanted)
}

// RefusesTruncated reports that API servers refuse writes of truncated objects, as a migration
// would make them: it reads objects at the version that it writes.
func (a *Activation) RefusesTruncated() bool {
	if !a.limitsSize() || !a.converter.Active || a.converter.StoredImage(a.converter.Named()) != nil {
		return true
	}
	wanted := a.admission([]string{a.converter.Named()}).Webhooks
	return a.covered(slices.DeleteFunc(wanted, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return !strings.HasSuffix(webhook.Name, truncatedSuffix)
	}))
}

// ownWebhooks are those that the operator wrote.
func ownWebhooks(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	return slices.DeleteFunc(slices.Clone(configuration.Webhooks), func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return !strings.HasSuffix(webhook.Name, admissionSuffix)
	})
}

// untrusting are webhooks without caBundle.
func untrusting(webhooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	out := slices.Clone(webhooks)
	for i := range out {
		out[i].ClientConfig.CABundle = nil
	}
	return out
}

func sumOfWebhooks(wanted *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	text, err := json.Marshal(untrusting(wanted.Webhooks))
	if err != nil {
		return "" // cannot happen: they consist of strings and numbers
	}
	return names.Hash(string(text))[:16]
}

// admissionSince is the hash of the webhooks that the operator wrote last, and the time since
// when they are unchanged; zero if there are none, or if that is unknown.
func (a *Activation) admissionSince() (sum string, since time.Time) {
	if a.Admission == nil {
		return "", time.Time{}
	}
	sum, text, _ := strings.Cut(a.Admission.Annotations[sinceAnnotation], " ")
	since, err := time.Parse(time.RFC3339, text)
	if err != nil || since.After(a.Now.Add(maxAdmissionDelay)) {
		return "", time.Time{}
	}
	return sum, since
}

// AdmissionApply is the apply configuration of a webhook configuration.
func AdmissionApply(wanted *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration {
	text, err := json.Marshal(wanted)
	object := &admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration{}
	if err != nil || json.Unmarshal(text, object) != nil {
		return nil // cannot happen: both have the same JSON
	}
	return object
}

// AdmissionLeft reports a webhook configuration that is not needed once no API server converts by
// a ruleset that truncates.
func (a *Activation) AdmissionLeft() bool { return a.Admission != nil && !a.limitsSize() }
