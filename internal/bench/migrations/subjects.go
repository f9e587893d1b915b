// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// subject rewrites all objects of a kind at the new version.
type subject struct {
	name string
	run  func(ctx context.Context, s setup) (measure.Memory, error)
}

func (c *cluster) subjects(binary string) []subject {
	var all []subject
	for _, pace := range []v1alpha1.MigrationPace{v1alpha1.MigrationFast, v1alpha1.MigrationGentle} {
		all = append(all, subject{fmt.Sprintf("conversion-operator migrate, %s", pace), func(ctx context.Context, s setup) (measure.Memory, error) {
			return c.migrate(ctx, binary, s, pace, nil)
		}})
	}
	return append(all,
		subject{"patches alone, 32 at once", func(ctx context.Context, s setup) (measure.Memory, error) {
			return measure.Memory{}, c.patch(ctx, s, newVersion, 32)
		}},
		subject{"Kubernetes' StorageVersionMigration", c.inTree},
		subject{"read and replace, one by one", c.replace},
	)
}

// look is called regularly during a run.
type look func(ctx context.Context, run string, memory measure.Memory)

// migrate runs the migrator like its Job, but without a propagation delay, because no other client
// writes.
func (c *cluster) migrate(ctx context.Context, binary string, s setup, pace v1alpha1.MigrationPace, seen look) (measure.Memory, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: s.definitionName()}, crd); err != nil {
		return measure.Memory{}, err
	}
	run := fmt.Sprintf("run-%d", time.Now().UnixNano())
	checkpoint := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: run}}
	if err := c.client.Create(ctx, checkpoint); err != nil {
		return measure.Memory{}, err
	}
	spec := contract.Spec{
		FormatVersion: contract.SpecFormat, Run: run, Namespace: namespace, RecordConfigMap: run,
		Pin:       contract.Pin{Name: crd.Name, UID: crd.UID, Generation: crd.Generation},
		Resource:  metav1.GroupVersionResource{Group: s.group, Version: newVersion, Resource: plural},
		Preflight: contract.DefaultPreflight, PageSize: contract.DefaultPageSize, Concurrency: contract.DefaultConcurrency,
		Pace: pace, Verify: v1alpha1.MigrationVerifySample,
	}
	command := exec.CommandContext(ctx, binary, append(spec.Args(), "--kubeconfig="+os.Getenv("KUBECONFIG"))...)
	memory, err := watched(command, func(memory measure.Memory) {
		if seen != nil {
			seen(ctx, run, memory)
		}
	})
	if err != nil {
		return memory, err
	}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(checkpoint), checkpoint); err != nil {
		return memory, err
	}
	record, err := contract.ParseRecord([]byte(checkpoint.Data[contract.RecordKey]))
	if err == nil && !record.Complete() {
		err = fmt.Errorf("the run did not complete: %+v", record)
	}
	return memory, err
}

// watched runs a command, and reads its memory until it ends.
func watched(command *exec.Cmd, seen func(measure.Memory)) (measure.Memory, error) {
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return measure.Memory{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var last measure.Memory
	for {
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("%w: %s", err, said.Bytes())
			}
			return last, err
		case <-time.After(pollPeriod):
			if memory, err := measure.MemoryOf(command.Process.Pid); err == nil && memory.Peak > 0 {
				last = memory
				seen(memory)
			}
		}
	}
}

// patch is the limit: only patches, atOnce in parallel. A conflict means that another client has
// rewritten the object.
func (c *cluster) patch(ctx context.Context, s setup, version string, atOnce int) error {
	objects := c.metadata.Resource(s.at(version)).Namespace(namespace)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	err := c.pages(ctx, s, version, func(page []metav1.PartialObjectMetadata) error {
		for _, object := range page {
			group.Go(func() error {
				body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, object.ResourceVersion)
				_, err := objects.Patch(ctx, object.Name, types.MergePatchType, body, metav1.PatchOptions{})
				if apierrors.IsConflict(err) {
					return nil
				}
				return err
			})
		}
		return nil
	})
	return errors.Join(err, group.Wait())
}

// replace lists objects and updates them unchanged, as many tools do.
func (c *cluster) replace(ctx context.Context, s setup) (measure.Memory, error) {
	objects := c.objects.Resource(s.at(newVersion)).Namespace(namespace)
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := objects.List(ctx, options)
		if err != nil {
			return measure.Memory{}, err
		}
		for i := range page.Items {
			if _, err := objects.Update(ctx, &page.Items[i], metav1.UpdateOptions{}); err != nil {
				return measure.Memory{}, err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return measure.Memory{}, nil
		}
	}
}

// inTree lets kube-controller-manager migrate. It reads objects from its own cache, and so starts
// with a delay.
func (c *cluster) inTree(ctx context.Context, s setup) (measure.Memory, error) {
	wanted := &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: plural + "-"},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{
			Resource: metav1.GroupResource{Group: s.group, Resource: plural},
		},
	}
	if err := c.client.Create(ctx, wanted); err != nil {
		return measure.Memory{}, err
	}
	err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(wanted), wanted); err != nil {
			return false, err
		}
		if failed := apimeta.FindStatusCondition(wanted.Status.Conditions, string(storagemigrationv1.MigrationFailed)); failed != nil && failed.Status == metav1.ConditionTrue {
			return false, errors.New(failed.Message)
		}
		return apimeta.IsStatusConditionTrue(wanted.Status.Conditions, string(storagemigrationv1.MigrationSucceeded)), nil
	})
	return measure.Memory{}, err
}
