// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// startFleet creates the default fleet, as the first policy would have the operator do.
func (s *suite) startFleet(ctx context.Context) error {
	if s.OwnPods {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watching, err := s.cluster.client.Watch(ctx, &v1alpha1.ConverterFleetList{})
	if err != nil {
		return err
	}
	defer watching.Stop()
	s.tell("starting the fleet")
	began := time.Now()
	if err := s.cluster.client.Create(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: string(v1alpha1.DefaultFleet)}}); err != nil {
		return err
	}
	err = until(ctx, watching, func(fleet *v1alpha1.ConverterFleet) bool {
		return apimeta.IsStatusConditionTrue(fleet.Status.Conditions, v1alpha1.ReadyCondition) && fleet.Status.ReadyReplicas == 3
	})
	s.add("a fleet starts", "ConverterFleet created -> 3 pods are ready", time.Since(began).Seconds(), "s")
	return err
}

// atOnce creates many policies at once.
func (s *suite) atOnce(ctx context.Context, p *process, many []*apiextensionsv1.CustomResourceDefinition) (err error) {
	s.tell("activating %d policies at once", len(many))
	name := s.together()
	s.cpu, err = s.use(ctx, p, name, "activation", len(many), func() error {
		took, err := s.activateAll(ctx, many)
		for _, stage := range stages {
			s.spans(name, "policies applied -> "+stage, took[stage])
		}
		return err
	})
	return err
}

// together is the case of atOnce.
func (s *suite) together() string {
	return fmt.Sprintf("%d policies at once, %d CustomResourceDefinitions", s.Policies, s.Definitions)
}

// bare measures what the writes of atOnce need without the operator, which would restore the CRDs. This
// is after all else, because a CRD that had another converter needs a migration.
func (s *suite) bare(ctx context.Context, many []*apiextensionsv1.CustomResourceDefinition) error {
	name := s.together()
	for _, floor := range []struct {
		does string
		work func(context.Context, []*apiextensionsv1.CustomResourceDefinition) error
	}{
		{"floor: the smallest operator", s.smallest},
		{"floor: bare patches of spec.conversion", s.cluster.barePatches},
	} {
		s.tell("%s, %d CustomResourceDefinitions", floor.does, len(many))
		cpu, err := s.use(ctx, nil, name, floor.does, len(many), func() error {
			began := time.Now()
			err := floor.work(ctx, many)
			s.add(name, fmt.Sprintf("%s, %d in parallel", floor.does, writesAtOnce), time.Since(began).Seconds(), "s")
			return err
		})
		if err != nil {
			return err
		}
		s.add(name, "activation, in CPU time of "+floor.does, s.cpu.Seconds()/cpu.Seconds(), "times the floor")
	}
	return nil
}

// idle measures manager and pods, while nothing changes.
func (s *suite) idle(ctx context.Context, p *process, converting []*apiextensionsv1.CustomResourceDefinition) error {
	name := s.size(len(converting))
	before, err := s.cluster.versions(ctx)
	if err != nil {
		return err
	}
	if err := s.rest(ctx, p, name, manager); err != nil {
		return err
	}
	after, err := s.cluster.versions(ctx)
	if err != nil {
		return err
	}
	written := 0
	for name, version := range before {
		if after[name] != version {
			written++
		}
	}
	s.add(name, manager, float64(written), "definitions written at rest")
	return s.memory(ctx, "converters of "+name, converting)
}

func (s *suite) oneCase() string {
	return fmt.Sprintf("one policy at a time, %d times, beside %s", s.Singles, s.size(s.Policies))
}

// floors measures what the API server needs for one CRD.
func (s *suite) floors(ctx context.Context) error {
	s.tell("writing spec.conversion of one CustomResourceDefinition, %d times", s.Singles)
	found, err := s.cluster.propagate(ctx, s.Singles)
	if err != nil {
		return err
	}
	s.spans(s.oneCase(), "floor: spec.conversion patched -> written", found.written)
	s.spans(s.oneCase(), "floor: spec.conversion patched -> API server uses it", found.used)
	return nil
}

func (s *suite) oneByOne(ctx context.Context, ones []*apiextensionsv1.CustomResourceDefinition) error {
	s.tell("activating %d policies, one at a time", len(ones))
	took := map[string][]time.Duration{}
	for _, crd := range ones {
		times, err := s.activateAll(ctx, []*apiextensionsv1.CustomResourceDefinition{crd})
		if err != nil {
			return err
		}
		for stage, spans := range times {
			took[stage] = append(took[stage], spans...)
		}
	}
	for _, stage := range stages {
		s.spans(s.oneCase(), "policy applied -> "+stage, took[stage])
	}
	return nil
}

func (s *suite) changes(ctx context.Context, ones []*apiextensionsv1.CustomResourceDefinition) error {
	s.tell("changing the rules of %d policies, one at a time", len(ones))
	var took []time.Duration
	for _, crd := range ones {
		span, err := s.change(ctx, crd.Name)
		if err != nil {
			return fmt.Errorf("change the rules of %s: %w", crd.Name, err)
		}
		took = append(took, span)
	}
	s.spans(s.oneCase(), "rules changed -> the CRD names the new ruleset", took)
	return nil
}

// others creates policies for all others at once.
func (s *suite) others(ctx context.Context, p *process, others, all []*apiextensionsv1.CustomResourceDefinition) error {
	if len(others) == 0 {
		return nil
	}
	s.tell("activating %d more policies at once", len(others))
	took, err := s.activateAll(ctx, others)
	if err != nil {
		return err
	}
	s.add(fmt.Sprintf("%d more policies at once, %s", len(others), s.size(len(all))), "policies applied -> all "+v1alpha1.ConversionConfiguredCondition,
		measure.Quantile(took[v1alpha1.ConversionConfiguredCondition], 1).Seconds(), "s")
	return s.idle(ctx, p, all)
}

// spans adds the quantiles of times.
func (s *suite) spans(name, subject string, spans []time.Duration) {
	s.add(name, subject, measure.Quantile(spans, 0.5).Seconds(), "s, p50")
	s.add(name, subject, measure.Quantile(spans, 0.95).Seconds(), "s, p95")
	s.add(name, subject, measure.Quantile(spans, 1).Seconds(), "s, longest")
}

// injector measures the other program, if there is one, idle with the same CRDs.
func (s *suite) injector(ctx context.Context) error {
	if s.Injector == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := startProcess(ctx, s.cluster.kubeconfig, s.Injector)
	if err != nil {
		return err
	}
	defer p.wait()
	defer cancel()
	return s.rest(ctx, p, s.size(s.converting()), "cert-manager cainjector")
}
