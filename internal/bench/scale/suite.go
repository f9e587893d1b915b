// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// Suite is the name of this suite.
const Suite = "scale"

// Options set the size of the measurement.
type Options struct {
	// Definitions is the number of CustomResourceDefinitions, Policies the number of those with a
	// policy.
	Definitions, Policies int
	// Rest is the time for which the idle process is measured.
	Rest time.Duration
	// Binary is the operator's binary, Injector another program that watches
	// CustomResourceDefinitions, as a reference.
	Binary, Injector string
}

// suite is one run.
type suite struct {
	Options
	cluster  *cluster
	progress io.Writer
	rows     []measure.Row
}

// Run starts a kube-apiserver and the manager, and measures.
func Run(ctx context.Context, progress io.Writer, options Options) (rows []measure.Row, err error) {
	dir, err := os.MkdirTemp("", "conversion-operator-scale-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made, err := definitions(ctx, options.Definitions, options.Policies)
	if err != nil {
		return nil, err
	}
	s := &suite{Options: options, progress: progress}
	s.tell("starting a kube-apiserver")
	if s.cluster, err = start(ctx, dir); err != nil {
		return nil, err
	}
	defer func() {
		if stopped := s.cluster.environment.Stop(); err == nil {
			err = stopped
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error { return (&nodes{client: s.cluster.client}).run(ctx) })
	group.Go(func() error { return newConverters(s.cluster.client).run(ctx) })
	group.Go(func() error {
		defer cancel()
		return s.measure(ctx, made)
	})
	return s.rows, group.Wait()
}

func (s *suite) tell(format string, args ...any) {
	fmt.Fprintf(s.progress, Suite+": "+format+"\n", args...)
}

func (s *suite) add(subject string, value float64, unit string) {
	s.rows = append(s.rows, measure.Row{Suite: Suite, Subject: subject, Value: value, Unit: unit,
		Case: fmt.Sprintf("%d policies, %d CustomResourceDefinitions", s.Policies, s.Definitions)})
}

func (s *suite) measure(ctx context.Context, all []*apiextensionsv1.CustomResourceDefinition) error {
	s.tell("creating %d CustomResourceDefinitions", len(all))
	if err := s.cluster.define(ctx, all); err != nil {
		return err
	}
	if err := s.manager(ctx, all[:s.Policies]); err != nil {
		return err
	}
	if s.Injector == "" {
		return nil
	}
	return s.injector(ctx)
}

func (s *suite) manager(ctx context.Context, converting []*apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const subject = "conversion-operator manager"
	p, err := startProcess(ctx, s.cluster.kubeconfig, s.Binary, "manager", "--namespace="+system, "--image=bench",
		"--health-probe-bind-address=0", "--propagation-delay=2s")
	if err != nil {
		return err
	}
	s.tell("activation %d policies, all but one at once", len(converting))
	last := len(converting) - 1
	for _, step := range []struct {
		definitions []*apiextensionsv1.CustomResourceDefinition
		unit        string
	}{{converting[:last], "s until all are active"}, {converting[last:], "s for one more"}} {
		began := time.Now()
		if err := s.cluster.activate(ctx, step.definitions); err != nil {
			return fmt.Errorf("%w; the manager says: %s", err, lastOf(p.log.Bytes()))
		}
		s.add(subject, time.Since(began).Seconds(), step.unit)
	}
	before, err := s.cluster.versions(ctx)
	if err != nil {
		return err
	}
	if err := s.rest(ctx, p, subject); err != nil {
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
	s.add(subject, float64(written), "definitions written at rest")
	return nil
}

// injector measures the other program, idle with the same CRDs.
func (s *suite) injector(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := startProcess(ctx, s.cluster.kubeconfig, s.Injector)
	if err != nil {
		return err
	}
	return s.rest(ctx, p, "cert-manager cainjector")
}

func (s *suite) rest(ctx context.Context, p *process, subject string) error {
	s.tell("%s is left alone for %s, twice: the first time it may still have something to do", subject, s.Rest)
	if _, _, err := p.rest(ctx, s.Rest); err != nil {
		return err
	}
	memory, cpu, err := p.rest(ctx, s.Rest)
	s.add(subject, memory.Resident, "MiB resident")
	s.add(subject, memory.Anonymous, "MiB of it anonymous")
	s.add(subject, memory.Peak, "MiB at the peak")
	s.add(subject, measure.In(time.Millisecond, cpu), "ms CPU in a minute at rest")
	return err
}
