// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// patience bounds each wait; patienceEach is added for each policy, as an API server with many
// CustomResourceDefinitions takes a second for each change.
const patience, patienceEach = 10 * time.Minute, 2 * time.Second

// stages are the conditions that are timed.
var stages = []string{v1alpha1.RulesValidCondition, v1alpha1.WebhookAvailableCondition, v1alpha1.ConversionVerifiedCondition,
	v1alpha1.ConversionConfiguredCondition, v1alpha1.ReadyCondition}

// policy is that of a definition with two versions, in the default fleet or with its own pods.
func (s *suite) policy(crd *apiextensionsv1.CustomResourceDefinition) *v1alpha1.ConversionPolicy {
	made := &v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Declarative: rules(crd)}},
	}
	if s.OwnPods {
		made.Spec.Workload = &v1alpha1.Workload{}
	}
	return made
}

// activateAll creates a policy for each CRD at once, and returns the times until each condition is True
// for each of them.
func (s *suite) activateAll(ctx context.Context, converting []*apiextensionsv1.CustomResourceDefinition) (map[string][]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(len(converting))*patienceEach)
	defer cancel()
	watching, err := s.cluster.follow(ctx, &v1alpha1.ConversionPolicyList{})
	if err != nil {
		return nil, err
	}
	defer watching.Stop()
	missing, last := map[string]map[string]bool{}, map[string]string{}
	for _, stage := range stages {
		missing[stage] = map[string]bool{}
		for _, crd := range converting {
			missing[stage][crd.Name] = true
		}
	}
	began, took := time.Now(), map[string][]time.Duration{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return each(ctx, converting, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
			return s.cluster.client.Create(ctx, s.policy(crd))
		})
	})
	group.Go(func() error {
		return until(ctx, watching, func(policy *v1alpha1.ConversionPolicy) bool {
			last[policy.Name] = readyMessage(policy)
			left := 0
			for _, stage := range stages {
				if missing[stage][policy.Name] && apimeta.IsStatusConditionTrue(policy.Status.Conditions, stage) {
					delete(missing[stage], policy.Name)
					took[stage] = append(took[stage], time.Since(began))
				}
				left += len(missing[stage])
			}
			return left == 0
		})
	})
	err = group.Wait()
	for name := range missing[v1alpha1.ReadyCondition] {
		err = fmt.Errorf("%d policies are not Ready: %w; %s", len(missing[v1alpha1.ReadyCondition]), err, last[name])
		break
	}
	return took, err
}

// change adds a rule to a policy, and returns the time until its CRD names the new ruleset.
func (s *suite) change(ctx context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	policy := &v1alpha1.ConversionPolicy{}
	if err := s.cluster.client.Get(ctx, client.ObjectKey{Name: name}, policy); err != nil {
		return 0, err
	}
	watching, err := s.cluster.client.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		return 0, err
	}
	defer watching.Stop()
	var before string
	if err := until(ctx, watching, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		before = webhookPath(crd)
		return true
	}); err != nil {
		return 0, err
	}
	base := policy.DeepCopy()
	spoke := &policy.Spec.Converter.Declarative.Spokes[0]
	spoke.Rules = append(spoke.Rules, anotherRule)
	began := time.Now()
	if err := s.cluster.client.Patch(ctx, policy, client.MergeFrom(base)); err != nil {
		return 0, err
	}
	err = until(ctx, watching, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return webhookPath(crd) != before })
	return time.Since(began), err
}

// webhookPath ends with the hash of the ruleset by which a CRD converts.
func webhookPath(crd *apiextensionsv1.CustomResourceDefinition) string {
	if conversion := crd.Spec.Conversion; conversion != nil && conversion.Webhook != nil {
		return *conversion.Webhook.ClientConfig.Service.Path
	}
	return ""
}

func readyMessage(policy *v1alpha1.ConversionPolicy) string {
	ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return policy.Name + " has no status"
	}
	return strings.Join([]string{policy.Name, ready.Reason, ready.Message}, ": ")
}
