// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
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
	// readPause makes a reader an ordinary client instead of a load test.
	readPause = 20 * time.Millisecond
)

// player performs steps, and checks invariants.
type player struct {
	out     io.Writer
	cluster client.Client
	dynamic dynamic.Interface
	// pruned has the prunings by other clients, by subject, while objects are stored at the pruned
	// versions.
	pruned map[string]Pruning
	// last is the previous observation of each subject.
	last map[string]Observation
	// played are the steps so far.
	played []Step
	// reads counts the successful reads during steps.
	reads int64
}

// Run installs the operator on the cluster of the current kubeconfig, and plays the steps of a seed for
// a time, and then those that remove every subject.
func Run(ctx context.Context, out io.Writer, seed uint64, lasts time.Duration) error {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubeconfig.QPS, kubeconfig.Timeout = -1, requestTimeout
	kubeconfig.WarningHandler = rest.NoWarnings{} // versions are deprecated all the time
	p := &player{out: out, last: map[string]Observation{}, pruned: map[string]Pruning{}}
	root, rootErr := scenarios.Root()
	p.dynamic, err = dynamic.NewForConfig(kubeconfig)
	if err = errors.Join(rootErr, err); err != nil {
		return err
	}
	if p.cluster, err = client.New(kubeconfig, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	teller := scenarios.NewTeller(out, root)
	if err := scenarios.Install(ctx, teller); err != nil {
		return err
	}
	teller.Say("Some steps overwrite spec.conversion, which the guard would refuse.")
	teller.Show(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	if err := teller.Failure(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nseed %d, for %s\n", seed, lasts)
	start := time.Now()
	if err := p.play(ctx, NewSequence(seed), start.Add(lasts)); err != nil {
		return fmt.Errorf("\nthe steps so far:\n%sFAILED with seed %d in step %d (make soak SOAKSEED=%d plays it again):\n%w",
			lines(p.played), seed, len(p.played), seed, err)
	}
	fmt.Fprintf(out, "seed %d: %d steps in %s, %d reads meanwhile, and every invariant held\n",
		seed, len(p.played), time.Since(start).Round(time.Second), p.reads)
	return nil
}

func (p *player) play(ctx context.Context, steps *Sequence, until time.Time) error {
	err := eventually(ctx, "there are fleets", func(ctx context.Context) error { return p.applyFleets(ctx, Step{Fleets: steps.model.Fleets}) })
	for err == nil && time.Now().Before(until) {
		err = p.playStep(ctx, steps.Next())
	}
	if err != nil {
		return err
	}
	for _, s := range steps.Finish() {
		if err := p.playStep(ctx, s); err != nil {
			return err
		}
	}
	return p.deleteFleets(ctx)
}

// playStep performs one step while clients read and write, and then checks the invariants. In a gentle
// step, no read fails until nothing changes any more.
func (p *player) playStep(ctx context.Context, s Step) error {
	start := time.Now()
	fmt.Fprintln(p.out, s)
	p.played = append(p.played, s)
	finishReading := p.startReading(ctx, s)
	err := p.do(ctx, s)
	if err == nil && s.Gentle {
		err = p.checkInvariants(ctx, s)
	}
	failed, wrong := finishReading()
	err = errors.Join(err, wrong)
	switch {
	case err == nil && !s.Gentle:
		err = p.checkInvariants(ctx, s)
	case s.Gentle && failed != "":
		err = errors.Join(err, fmt.Errorf("a read failed, and none should, as pods that convert were there all the time: %s", failed))
	}
	fmt.Fprintf(p.out, "     %.1f s\n", time.Since(start).Seconds())
	return err
}

// do performs the action of a step while clients write: in parallel, each with its writes in order. Like
// controllers, all of them retry until they succeed.
func (p *player) do(ctx context.Context, s Step) error {
	actors, ctx := errgroup.WithContext(ctx)
	if action := kindNamed(s.Kind).do; action != nil {
		actors.Go(func() error {
			return eventually(ctx, s.Kind+" succeeds", func(ctx context.Context) error { return action(p, ctx, s) })
		})
	}
	for number := range clientsAtMost {
		actors.Go(func() error {
			for _, w := range s.Writes {
				if w.Client != number {
					continue
				}
				if err := eventually(ctx, w.String(), func(ctx context.Context) error { return p.write(ctx, w) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return actors.Wait()
}

// checkInvariants observes until the invariants hold: those that always hold and, if the step waits,
// those that hold once nothing changes any more.
func (p *player) checkInvariants(ctx context.Context, s Step) error {
	var always []string
	err := eventually(ctx, "the cluster comes to rest", func(ctx context.Context) error {
		all, err := p.observe(ctx, s)
		if err != nil {
			return err
		}
		var wrong []string
		for _, name := range sortedKeys(all) {
			always = append(always, Check(true, all[name], p.last[name])...)
			if s.Gentle {
				always = append(always, violationsOf(unreadable, all[name], all[name])...)
			}
			wrong = append(wrong, Check(false, all[name], p.last[name])...)
		}
		p.last = all
		p.forgetPruned(all)
		if s.Waits && len(always) == 0 && len(wrong) > 0 {
			return errors.New(strings.Join(wrong[:min(len(wrong), 10)], "\n"))
		}
		return nil
	})
	if len(always) > 0 {
		return errors.New("what must never be:\n" + strings.Join(always, "\n"))
	}
	return err
}

// forgetPruned deletes the record of prunings once all stored versions are listed again.
func (p *player) forgetPruned(all map[string]Observation) {
	for name, now := range all {
		if len(now.unlisted()) == 0 {
			delete(p.pruned, name)
		}
	}
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

// objects returns a client for the objects of a subject at a version.
func (p *player) objects(subject, version string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: groupOf(subject), Version: version, Resource: "crontabs"}
	return p.dynamic.Resource(resource).Namespace(scenarios.Namespace)
}

func (p *player) write(ctx context.Context, w Write) error {
	objects := p.objects(w.Subject, w.Version)
	switch w.Do {
	case labelObject:
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{w.label(): "in-" + w.Version}}})
		if err == nil {
			_, err = objects.Patch(ctx, w.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return err
	case deleteObject:
		err := objects.Delete(ctx, w.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			// An API server that starts returns the same error for every version.
			_, err = objects.List(ctx, metav1.ListOptions{Limit: 1})
		}
		return err
	}
	// If the response of a write was lost, the retry finds that write.
	object, err := objects.Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = objects.Create(ctx, w.object(), metav1.CreateOptions{})
	case err == nil && !reflect.DeepEqual(object.Object["spec"], w.object().Object["spec"]):
		object.Object["spec"] = w.spec(w.Version)
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}

// object returns the object that a client creates.
func (w Write) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": groupOf(w.Subject) + "/" + w.Version, "kind": "CronTab",
		"metadata": map[string]any{"name": w.Name, "namespace": scenarios.Namespace}, "spec": w.spec(w.Version)}}
}

// reading is an object to read at a version.
type reading struct {
	subject       Subject
	name, version string
}

// readings returns the objects that the step does not affect, and that no client writes meanwhile, at the
// versions that are served before and after it.
func readings(s Step) []reading {
	written := map[string]bool{}
	for _, w := range s.Writes {
		written[w.Subject+"/"+w.Name] = true
	}
	var all []reading
	for i, before := range s.Before {
		if kindNamed(s.Kind).noWrites && s.Subject == before.Name {
			continue
		}
		for name := range before.Objects {
			for _, version := range s.After[i].Served {
				if !written[before.Name+"/"+name] && slices.Contains(before.Served, version) {
					all = append(all, reading{before, name, version})
				}
			}
		}
	}
	return all
}

// startReading reads objects until finish, which returns the first failed read, if any, and an error if a
// read returned wrong data, which must never happen.
func (p *player) startReading(ctx context.Context, s Step) (finish func() (failed string, wrong error)) {
	ctx, stop := context.WithCancel(ctx)
	failed, reader := "", errgroup.Group{}
	reader.Go(func() error {
		for all := readings(s); len(all) > 0; {
			for _, each := range all {
				if <-time.After(readPause); ctx.Err() != nil {
					return nil //nolint:nilerr // the step is over
				}
				// A request that is cancelled is a failed conversion for the API server.
				object, err := p.objects(each.subject.Name, each.version).Get(context.WithoutCancel(ctx), each.name, metav1.GetOptions{})
				if err == nil {
					p.reads++
				} else if failed == "" {
					failed = fmt.Sprintf("%s at %s: %v", each.name, time.Now().Format(time.TimeOnly), err)
				}
				now := Observation{Subject: each.subject, Reads: map[string]map[string]read{each.version: {each.name: asRead(object, err)}}}
				if wrong := violationsOf(readsDiffer, now, now); len(wrong) > 0 {
					return fmt.Errorf("a client that read %s while the step went on: %s", each.subject.Name, strings.Join(wrong, "\n"))
				}
			}
		}
		return nil
	})
	return func() (string, error) {
		stop()
		wrong := reader.Wait()
		return failed, wrong
	}
}
