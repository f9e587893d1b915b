// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	// patience bounds every wait. It exceeds the longest back-off of a node before it restarts a
	// container, plus the time of a migration or a rotation.
	patience = 10 * time.Minute
	// pause is the time between two tries.
	pause = 200 * time.Millisecond
	// requestTimeout bounds requests to an API server that hangs.
	requestTimeout = 15 * time.Second
)

// player performs steps, and checks invariants.
type player struct {
	// teller prints the steps, and runs commands.
	teller  *scenarios.Teller
	cluster client.Client
	// pruned has the etcd revisions at which other clients pruned status.storedVersions, by subject, while
	// objects are stored at the pruned versions.
	pruned map[string]int64
	// last is the previous observation of each subject.
	last map[string]Observation
	// reads counts the reads during steps.
	reads int64
}

// Run installs the operator on the cluster of the current kubeconfig, and plays the steps of a seed for
// a time.
func Run(ctx context.Context, out io.Writer, seed uint64, lasts time.Duration) error {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubeconfig.QPS, kubeconfig.Timeout = -1, requestTimeout
	kubeconfig.WarningHandler = rest.NoWarnings{} // versions are deprecated all the time
	root, rootErr := scenarios.Root()
	cluster, err := client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	if err = errors.Join(rootErr, err); err != nil {
		return err
	}
	p := &player{teller: scenarios.NewTeller(out, root), cluster: cluster, last: map[string]Observation{}, pruned: map[string]int64{}}
	if err := scenarios.Install(ctx, p.teller); err != nil {
		return err
	}
	p.teller.Say("Some steps overwrite spec.conversion, which the guard would refuse.")
	p.teller.Show(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	p.teller.Title(fmt.Sprintf("Seed %d, for %s", seed, lasts))
	steps, until := NewSequence(seed), time.Now().Add(lasts)
	for err = p.teller.Failure(); err == nil && time.Now().Before(until); {
		err = p.play(ctx, steps.Next())
	}
	if err != nil {
		return fmt.Errorf("\nFAILED with seed %d in step %d (make soak SOAKSEED=%d plays it again):\n%w", seed, steps.number, seed, err)
	}
	p.teller.Say("seed %d: %d steps, %d reads meanwhile, and every invariant held", seed, steps.number, p.reads)
	return nil
}

// play performs one step while clients read and write, and then checks the invariants.
func (p *player) play(ctx context.Context, s Step) error {
	start := time.Now()
	fmt.Fprintln(p.teller.Out, s)
	reader := p.startReading(ctx, s)
	err := p.do(ctx, s)
	if err == nil {
		err = p.checkInvariants(ctx, s)
	}
	reads, wrong := reader.Stop()
	p.reads += reads
	fmt.Fprintf(p.teller.Out, "     %.1f s\n", time.Since(start).Seconds())
	return errors.Join(err, wrong)
}

// do performs the action of a step while clients write. Like controllers, all of them retry until they succeed.
func (p *player) do(ctx context.Context, s Step) error {
	actors, ctx := errgroup.WithContext(ctx)
	actors.Go(func() error {
		return eventually(ctx, s.Action+" succeeds", func(ctx context.Context) error { return p.act(ctx, s) })
	})
	for _, w := range s.Writes {
		actors.Go(func() error {
			return eventually(ctx, w.String(), func(ctx context.Context) error { return p.write(ctx, w) })
		})
	}
	return actors.Wait()
}

// checkInvariants observes until the invariants hold: those that always hold and, if the step waits,
// those that hold once nothing changes any more.
func (p *player) checkInvariants(ctx context.Context, s Step) error {
	var always error
	err := eventually(ctx, "the cluster comes to rest", func(ctx context.Context) error {
		all, err := p.observe(ctx, s)
		if err != nil {
			return err
		}
		var never, notYet []string
		for name, now := range sorted(all) {
			wrong := Check(Always, now, p.last[name])
			if s.Gentle {
				wrong = append(wrong, Check([]Invariant{readable}, now, now)...)
			}
			if actionNamed(s.Action).breaks {
				notYet = append(notYet, wrong...)
			} else {
				never = append(never, wrong...)
			}
			notYet = append(notYet, Check(AtRest, now, p.last[name])...)
			p.pruned[name] = now.stillPruned()
		}
		p.last = all
		if always = asError(never); always != nil || !s.Waits {
			return nil
		}
		return asError(notYet[:min(len(notYet), 10)])
	})
	if always != nil {
		return fmt.Errorf("what must never be:\n%w", always)
	}
	return err
}

func asError(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "\n"))
}

// eventually calls try until it returns no error. On a timeout it returns the last error that the
// deadline itself did not cause.
func eventually(ctx context.Context, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("expected that %s; found after %s at most: %w", what, patience, last)
	}
	return nil
}

// write performs a write of a client. If the response was lost, the next try finds that write.
func (p *player) write(ctx context.Context, w Write) error {
	object, list := w.empty()
	if !w.Delete {
		return p.put(ctx, object, func() { object.Object["spec"] = w.spec(w.Version) })
	}
	err := p.cluster.Delete(ctx, object)
	if apierrors.IsNotFound(err) {
		// An API server that starts returns the same error for every version.
		err = p.cluster.List(ctx, list, client.Limit(1))
	}
	return err
}

// empty returns the object, and a list of such objects, without content.
func (o object) empty() (*unstructured.Unstructured, *unstructured.UnstructuredList) {
	version := groupOf(o.Subject) + "/" + o.Version
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": "CronTab",
			"metadata": map[string]any{"name": o.Name, "namespace": scenarios.Namespace}}},
		&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": "CronTabList"}}
}

// startReading starts a client that reads, in turn, objects that the step does not change, at versions that are
// served before and after it. No read may return wrong data, and in a gentle step none may fail, as pods that
// convert are there all the time.
func (p *player) startReading(ctx context.Context, s Step) *scenarios.Client {
	all, next := s.unchanged(), 0
	return scenarios.Repeat(ctx, func(ctx context.Context) error {
		if len(all) == 0 {
			return nil
		}
		each := all[next%len(all)]
		next++
		object, _ := each.empty()
		// A request that is cancelled is a failed conversion for the API server.
		err := p.cluster.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(object), object)
		if err != nil && s.Gentle {
			return fmt.Errorf("%s cannot be read: %w", each, err)
		}
		if err != nil {
			return nil //nolint:nilerr // failures cause it
		}
		now := Observation{Subject: s.After.subject(each.Subject), Reads: map[string]map[string]any{each.Version: {each.Name: object.Object["spec"]}}}
		return asError(Check([]Invariant{readsAsWritten}, now, now))
	})
}

// unchanged returns what reads the same before and after a step, and during it.
func (s Step) unchanged() (all []object) {
	for i, is := range s.After.Subjects {
		was := s.Before.Subjects[i]
		if actionNamed(s.Action).breaks && s.Target == is.Name {
			continue
		}
		for name, record := range was.Objects {
			for _, version := range was.served() {
				if slices.Contains(is.served(), version) && reflect.DeepEqual(is.Objects[name].spec(version), record.spec(version)) {
					all = append(all, object{is.Name, name, version})
				}
			}
		}
	}
	return all
}
