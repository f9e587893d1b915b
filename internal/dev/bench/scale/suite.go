// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures a manager and a fleet with many CustomResourceDefinitions and
// ConversionPolicies: the time until policies are active, what all processes need for that, the memory
// of the manager and of the converter pods, and what the manager does when nothing changes.
//
//	definitions.go  CustomResourceDefinitions with the schemas of public projects, and their rules
//	policies.go     creates policies, and waits for them
//	suite.go        the measurements
package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/cluster"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
)

// controllers are those that watch all kinds, which is most of the work of an API server with this many.
const controllers = "--controllers=-garbage-collector-controller,-resourcequota-controller"

// singles is the number of policies that are created one at a time.
const singles = 10

// Suite sets the size of the measurement.
type Suite struct {
	// definitions is the number of CustomResourceDefinitions, policies the number of those that get
	// a policy at once. After them, singles get one each, one after the other, and then all others.
	definitions, policies int
	// idle is the time for which an idle process is measured.
	idle time.Duration
}

// Flags defines the flags of the suite.
func (s *Suite) Flags(flags *flag.FlagSet) {
	flags.IntVar(&s.definitions, "definitions", 1000, "how many CustomResourceDefinitions there are")
	flags.IntVar(&s.policies, "policies", 200, "how many of them get a ConversionPolicy at once, before all others do")
	flags.DurationVar(&s.idle, "rest", time.Minute, "how long a process is watched at rest")
}

// run is one run of the suite.
type run struct {
	*Suite
	*measure.Results
	client client.WithWatch
}

// Run starts a cluster with the operator, and measures.
func (s *Suite) Run(ctx context.Context, results *measure.Results) (err error) {
	if s.policies < 1 || s.definitions <= s.policies+singles {
		return fmt.Errorf("-policies must be at least 1, and -definitions more than %d more", singles)
	}
	all, err := definitions(ctx, s.definitions)
	if err != nil {
		return err
	}
	results.Tell("starting a cluster with the operator")
	c, err := cluster.Start(ctx, controllers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	r := &run{Suite: s, Results: results, client: c.Client}
	r.Tell("creating %d CustomResourceDefinitions", len(all))
	// They are served after the time of rest.
	if err := each(ctx, all, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		return r.client.Create(ctx, crd.DeepCopy())
	}); err != nil {
		return err
	}
	many, others := all[:s.policies], all[s.policies:]
	injector, err := cluster.Binary("cainjector") // it watches CustomResourceDefinitions too
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return r.rest(ctx, r.size(0), cluster.Manager) },
		func() error { return r.startFleet(ctx) },
		func() error { return r.atOnce(ctx, many, "at once", s.policies) },
		func() error { return r.oneByOne(ctx, others[:singles]) },
		func() error { return r.atOnce(ctx, others[singles:], "the last ones at once", s.definitions) },
		func() error { return c.Nodes.Run(injector) },
		func() error { return r.rest(ctx, r.size(s.definitions), filepath.Base(injector)) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// size describes what a case is measured in.
func (r *run) size(policies int) string {
	return fmt.Sprintf("%d policies, %d CustomResourceDefinitions", policies, r.definitions)
}

// startFleet creates the default fleet, as the first policy would have the operator do.
func (r *run) startFleet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.Tell("starting the fleet")
	began := time.Now()
	fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: string(v1alpha1.DefaultFleet)}}
	err := follow(ctx, r, &v1alpha1.ConverterFleetList{}, func(ctx context.Context) error { return r.client.Create(ctx, fleet) }, func(fleet *v1alpha1.ConverterFleet) bool {
		return apimeta.IsStatusConditionTrue(fleet.Status.Conditions, v1alpha1.ReadyCondition) && fleet.Status.ReadyReplicas == 3
	})
	r.Add("a fleet starts", "ConverterFleet created -> 3 pods are ready", time.Since(began).Seconds(), "s")
	return err
}

// atOnce creates policies at once, and measures manager and pods while nothing changes afterwards, with all
// policies. The pods have converted objects of all kinds: the operator has proven that they do.
func (r *run) atOnce(ctx context.Context, many []*apiextensionsv1.CustomResourceDefinition, how string, all int) error {
	r.Tell("activating %d policies at once", len(many))
	name, before := r.size(all)+", "+how, cpu()
	took, err := r.activate(ctx, many)
	if err != nil {
		return err
	}
	after := cpu()
	r.addStages(name, "policies", took)
	for _, program := range programs {
		r.Add(name, program, measure.In(time.Millisecond, after[program]-before[program])/float64(len(many)), "ms CPU per policy")
	}
	if err := r.rest(ctx, r.size(all), cluster.Manager); err != nil {
		return err
	}
	used, err := measure.UsageOf(cluster.Converter)
	r.AddUsage(r.size(all), cluster.Converter, used)
	return err
}

func (r *run) oneByOne(ctx context.Context, ones []*apiextensionsv1.CustomResourceDefinition) error {
	r.Tell("activating %d policies, one at a time", len(ones))
	took := map[string][]time.Duration{}
	for i := range ones {
		times, err := r.activate(ctx, ones[i:i+1])
		if err != nil {
			return err
		}
		for stage, spans := range times {
			took[stage] = append(took[stage], spans...)
		}
	}
	r.addStages(fmt.Sprintf("one policy at a time, %d times, beside %s", len(ones), r.size(r.policies)), "policy", took)
	return nil
}

// addStages adds the times from the creation of policies until each condition is True.
func (r *run) addStages(name, applied string, took map[string][]time.Duration) {
	for _, stage := range stages {
		r.AddSpans(name, applied+" applied -> "+stage, took[stage])
	}
}

// rest measures an idle program twice: the first time it may still have something to do.
func (r *run) rest(ctx context.Context, name, program string) error {
	r.Tell("%s is left alone for %s, twice", program, r.idle)
	var before, after measure.Usage
	for range 2 {
		err := measure.Wait(ctx, r.idle)
		before = after
		if err == nil {
			after, err = measure.UsageOf(program)
		}
		if err != nil {
			return err
		}
	}
	r.AddUsage(name, program, after)
	r.Add(name, program, measure.In(time.Millisecond, after.CPU-before.CPU)*float64(time.Minute)/float64(r.idle), "ms CPU in a minute at rest")
	return nil
}

// programs are those whose CPU time is measured.
var programs = []string{cluster.Manager, cluster.APIServer, cluster.Etcd, cluster.Converter}

// cpu returns the CPU times of programs, as far as they run.
func cpu() map[string]time.Duration {
	spent := map[string]time.Duration{}
	for _, program := range programs {
		used, _ := measure.UsageOf(program) // what does not run uses nothing
		spent[program] = used.CPU
	}
	return spent
}
