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
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// Suite is the name of this suite with policies in the default fleet, and OwnSuite with pods of their
// own.
const (
	Suite    = "scale"
	OwnSuite = "scale-own"
)

// Options set the size of the measurement.
type Options struct {
	// Definitions is the number of CustomResourceDefinitions, Policies the number of those that get
	// a policy at once. After them, Singles get one each, one after the other. In the end, Most have
	// one, if that is more.
	Definitions, Policies, Singles, Most int
	// OwnPods gives each policy its own pods.
	OwnPods bool
	// Rest is the time for which the idle process is measured.
	Rest time.Duration
	// Binary is the operator's binary, Injector another program that watches
	// CustomResourceDefinitions, as a reference.
	Binary, Injector string
}

func (o Options) validate() error {
	if o.Policies < 1 || o.Singles < 1 {
		return fmt.Errorf("at least one policy must be created at once, and one alone, not %d and %d", o.Policies, o.Singles)
	}
	if converting := o.converting(); converting > o.Definitions {
		return fmt.Errorf("%d definitions cannot have %d policies", o.Definitions, converting)
	}
	return nil
}

// converting is the number of definitions that have a policy in the end.
func (o Options) converting() int { return max(o.Policies+o.Singles, o.Most) }

// suite is one run.
type suite struct {
	Options
	cluster *cluster
	nodes   *nodes
	// cpu is the CPU time of all processes while policies were created at once.
	cpu      time.Duration
	progress io.Writer
	rows     []measure.Row
}

// Run starts a kube-apiserver and the manager, and measures.
func Run(ctx context.Context, progress io.Writer, options Options) (rows []measure.Row, err error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "conversion-operator-scale-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made, err := definitions(ctx, options.Definitions, options.converting())
	if err != nil {
		return nil, err
	}
	address, err := testenv.OutsideAddress()
	if err != nil {
		return nil, err
	}
	s := &suite{Options: options, progress: progress}
	s.tell("starting a kube-apiserver")
	if s.cluster, err = start(ctx, dir); err != nil {
		return nil, err
	}
	defer func() {
		if stopped := s.cluster.server.Stop(); err == nil {
			err = stopped
		}
	}()
	s.nodes = &nodes{client: s.cluster.client, binary: options.Binary, dir: dir, address: address}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error { return s.nodes.run(ctx) })
	group.Go(func() error {
		defer cancel()
		return s.measure(ctx, made)
	})
	return s.rows, group.Wait()
}

func (s *suite) name() string {
	if s.OwnPods {
		return OwnSuite
	}
	return Suite
}

func (s *suite) tell(format string, args ...any) {
	fmt.Fprintf(s.progress, s.name()+": "+format+"\n", args...)
}

func (s *suite) add(name, subject string, value float64, unit string) {
	s.rows = append(s.rows, measure.Row{Suite: s.name(), Case: name, Subject: subject, Value: value, Unit: unit})
}

func (s *suite) measure(ctx context.Context, all []*apiextensionsv1.CustomResourceDefinition) error {
	s.tell("creating %d CustomResourceDefinitions", len(all))
	if err := s.cluster.define(ctx, all); err != nil {
		return err
	}
	if err := s.manager(ctx, all); err != nil {
		return err
	}
	if err := s.injector(ctx); err != nil {
		return err
	}
	return s.bare(ctx, all[:s.Policies])
}

const manager = "conversion-operator manager"

func (s *suite) manager(ctx context.Context, all []*apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := startProcess(ctx, s.cluster.kubeconfig, s.Binary, "manager", "--namespace="+system, "--image=bench", "--health-probe-bind-address=0")
	if err != nil {
		return err
	}
	defer p.wait()
	defer cancel()
	many, ones, others := all[:s.Policies], all[s.Policies:s.Policies+s.Singles], all[s.Policies+s.Singles:s.converting()]
	for _, step := range []func() error{
		func() error { return s.startFleet(ctx) },
		func() error { return s.atOnce(ctx, p, many) },
		func() error { return s.idle(ctx, p, many) },
		func() error { return s.floors(ctx) },
		func() error { return s.oneByOne(ctx, ones) },
		func() error { return s.changes(ctx, ones) },
		func() error { return s.others(ctx, p, others, all[:s.converting()]) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w; the manager says: %s", err, lastOf(p.log.Bytes()))
		}
	}
	return nil
}

// size describes what a case is measured in.
func (s *suite) size(policies int) string {
	return fmt.Sprintf("%d policies, %d CustomResourceDefinitions", policies, s.Definitions)
}
