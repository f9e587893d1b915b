// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// Check checks that each pod of a converter serves some rulesets.
type Check struct {
	Client client.Client
	// Name and Namespace are those of the converter.
	Name, Namespace string
	// Rulesets must be served, with a certificate that an authority of CABundle has issued.
	Rulesets []*conversion.Ruleset
	CABundle []byte
	// Every is the time between two rounds.
	Every time.Duration
}

// probeTimeout bounds the probe of one pod.
const probeTimeout = 10 * time.Second

// Wait waits until each ready pod answers for each ruleset as an API server expects it. Said gets what it waits for,
// once for each reason.
func (c Check) Wait(ctx context.Context, said func(string)) (pods int, err error) {
	var last error
	err = wait.PollUntilContextCancel(ctx, c.Every, true, func(ctx context.Context) (bool, error) {
		found, err := c.once(ctx)
		if pods = found; err != nil && (last == nil || ctx.Err() == nil && last.Error() != err.Error()) {
			last = err
			said(err.Error())
		}
		return err == nil, nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), last)
	}
	return pods, err
}

// once probes each pod once.
func (c Check) once(ctx context.Context) (int, error) {
	list, selector := &corev1.PodList{}, Converter{Name: c.Name}.workload().Selector()
	if err := c.Client.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(selector)); err != nil {
		return 0, fmt.Errorf("list the converter pods: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() || !workload.IsReady(&pod) })
	if len(list.Items) == 0 {
		return 0, fmt.Errorf("no converter pod with the labels %s is ready in namespace %s", labels.FormatLabels(selector), c.Namespace)
	}
	var errs []error
	for i := range list.Items {
		for _, ruleset := range c.Rulesets {
			if err := c.probe(ctx, &list.Items[i], ruleset); err != nil {
				errs = append(errs, fmt.Errorf("pod %s: %w", list.Items[i].Name, err))
			}
		}
	}
	return len(list.Items), errors.Join(errs...)
}

func (c Check) probe(ctx context.Context, pod *corev1.Pod, ruleset *conversion.Ruleset) error {
	canaries, err := probe.Canaries(ruleset)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err = probe.Pod(ctx, probe.Target{
		Address:  net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(workload.PortOf(&pod.Spec)))),
		CABundle: c.CABundle, ServerName: names.ServiceName(c.Name, c.Namespace), CRD: ruleset.CRD, RulesetHash: ruleset.Hash(),
		APIVersion: ruleset.Group + "/" + ruleset.Hub, Canaries: canaries,
	})
	return err
}
