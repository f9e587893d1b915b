// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrations measures how fast the operator and other tools rewrite stored objects in
// another version, one after the other in one cluster, and what another client notices of it. The kind
// is that of package converters, with and without its rules.
//
// Before each measurement all objects are stored at the old version and the storage version changes
// to the new one, so that every object has to be rewritten. Afterwards the bytes in etcd are
// checked. The loops (subjects.go) have no barriers, no handling of failures and no proofs: they show the
// cost of the writes alone. The operator's time is that from the trigger to the pruning.
package migrations

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/cluster"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	namespace              = scenarios.Namespace
	oldVersion, newVersion = "v1", "v2"
	// size is that of an object in etcd, about.
	size       = 1500
	pollPeriod = 200 * time.Millisecond
	pageSize   = 500
	// idleTime is the time for writes at the previous version to drain, and for the cluster to become
	// idle.
	idleTime = 5 * time.Second
)

// Suite measures migrations with each kind of conversion.
type Suite struct {
	count int
	alone time.Duration
	only  string
}

// Flags defines the flags of the suite.
func (s *Suite) Flags(flags *flag.FlagSet) {
	flags.IntVar(&s.count, "objects", 10_000, "how many objects of each kind there are")
	flags.DurationVar(&s.alone, "alone", 30*time.Second, "how long another client is watched alone")
	flags.StringVar(&s.only, "setup", "", "how the name of a setup begins, to run no other: strategy, or rules")
}

// run measures one setup in a cluster.
type run struct {
	*Suite
	*measure.Results
	name, group string
	crd         *apiextensionsv1.CustomResourceDefinition
	client      client.Client
}

// Run starts a cluster, and measures.
func (s *Suite) Run(ctx context.Context, results *measure.Results) (err error) {
	results.Tell("starting a cluster with the operator")
	c, err := cluster.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for _, r := range []*run{{name: "strategy None", group: "none.example.com"}, {name: "rules, in converter pods", group: "rules.example.com"}} {
		if !strings.HasPrefix(r.name, s.only) {
			continue
		}
		r.Suite, r.Results, r.client = s, results, c.Client
		err := r.prepare(ctx, c)
		if err == nil {
			err = r.measure(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (r *run) add(subject string, value float64, unit string) {
	r.Add(fmt.Sprintf("%d objects, %s", r.count, r.name), subject, value, unit)
}

func (r *run) at(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.group, Version: version, Kind: r.crd.Spec.Names.Kind}
}

// prepare creates the CRD and its policy, waits until it converts, and creates the objects.
func (r *run) prepare(ctx context.Context, c *testenv.Cluster) error {
	r.crd = converters.Definition(r.group)
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.crd.Name}}
	policy.Spec.Converter, policy.Spec.Migration.Mode = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: converters.Rules()}, v1alpha1.MigrationNever
	if r.name == "strategy None" {
		r.crd.Spec.Versions[1].Schema, policy.Spec.Converter = r.crd.Spec.Versions[0].Schema, v1alpha1.Converter{Type: v1alpha1.ConverterNone}
	}
	if err := errors.Join(r.client.Create(ctx, r.crd.DeepCopy()), r.client.Create(ctx, policy)); err != nil {
		return err
	}
	if err := r.await(ctx, 2*time.Minute, func(crd *apiextensionsv1.CustomResourceDefinition, policy *v1alpha1.ConversionPolicy) bool {
		return crds.Condition(crd, apiextensionsv1.Established) &&
			apimeta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
	}); err != nil {
		return err
	}
	r.Tell("%s: creating %d objects", r.name, r.count)
	if err := measure.Wait(ctx, idleTime); err != nil {
		return err
	}
	return converters.Create(ctx, c.Kubeconfig, r.crd, r.count, size)
}

// await polls until wanted accepts the CRD and its policy.
func (r *run) await(ctx context.Context, limit time.Duration, wanted func(*apiextensionsv1.CustomResourceDefinition, *v1alpha1.ConversionPolicy) bool) error {
	crd, policy := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.ConversionPolicy{}
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, limit, true, func(ctx context.Context) (bool, error) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.crd), crd); err != nil {
			return false, err
		}
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.crd), policy); err != nil {
			return false, err
		}
		return wanted(crd, policy), nil
	})
	if err != nil {
		return fmt.Errorf("%w; the policy says %v", err, policy.Status.Conditions)
	}
	return nil
}

// measure watches another client alone, and then while objects are rewritten by each subject.
func (r *run) measure(ctx context.Context) error {
	r.Tell("%s: another client alone, for %s", r.name, r.alone)
	alone, err := r.beside(ctx, func(ctx context.Context) error { return measure.Wait(ctx, r.alone) })
	if err != nil {
		return err
	}
	r.latencies("nobody", alone, alone)
	var ours float64
	for _, subject := range r.subjects() {
		if err := r.toMigrate(ctx); err != nil {
			return err
		}
		r.Tell("%s: %s", r.name, subject.name)
		began, rate := time.Now(), 0.0
		times, err := r.beside(ctx, func(ctx context.Context) error {
			err := subject.run(ctx)
			rate = float64(r.count) / time.Since(began).Seconds()
			return err
		})
		if err := errors.Join(err, r.storedAt(ctx, newVersion)); err != nil {
			return fmt.Errorf("%s: %w", subject.name, err)
		}
		if ours == 0 {
			ours = rate
		}
		r.add(subject.name, rate, "objects/s")
		r.add(subject.name, ours/rate, "times slower than ours")
		r.latencies(subject.name, times, alone)
	}
	return nil
}

func (r *run) latencies(subject string, times, alone []time.Duration) {
	p99 := measure.Quantile(times, 0.99)
	r.add(subject, measure.In(time.Millisecond, measure.Quantile(times, 0.5)), "ms p50 of another client")
	r.add(subject, measure.In(time.Millisecond, p99), "ms p99")
	r.add(subject, measure.In(measure.Quantile(alone, 0.99), p99), "times p99 alone")
}

// toMigrate stores all objects at the old version, and then makes the new one the storage version.
// Every subject migrates in this direction, as users do. The other direction would cost less:
// managedFields name the old version, to which the API server converts an object when it is written
// at the new one.
func (r *run) toMigrate(ctx context.Context) error {
	if err := r.store(ctx, oldVersion); err != nil {
		return err
	}
	if err := errors.Join(r.patch(ctx, oldVersion, 16), r.storedAt(ctx, oldVersion)); err != nil {
		return err
	}
	return r.store(ctx, newVersion)
}

// store makes a version the storage version and, if it was another one, waits until writes at that
// have drained.
func (r *run) store(ctx context.Context, version string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.crd), crd); err != nil || crds.StorageVersion(crd) == version {
		return err
	}
	before := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
	}
	if err := r.client.Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	return measure.Wait(ctx, idleTime)
}

// storedAt checks the stored versions in etcd.
func (r *run) storedAt(ctx context.Context, version string) error {
	stored, err := scenarios.ReadStored(ctx, r.group, r.crd.Spec.Names.Plural)
	if err != nil {
		return err
	}
	if apiVersion := r.group + "/" + version; !stored.Only(apiVersion) || stored.Versions[apiVersion] != r.count {
		return fmt.Errorf("not all of %d objects are stored at %s: %s", r.count, version, stored)
	}
	return nil
}
