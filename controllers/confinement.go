// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// No event reports a change that the manager may watch, and a manager can start before API servers know
// the admission policies that were applied with it. Each refusal is in the audit log of API servers.
const (
	// unconfinedInterval is the time between two checks while the manager is not known to be confined.
	unconfinedInterval = time.Minute
	// confinedInterval is that time while it is.
	confinedInterval = time.Hour
)

// Confinement checks whether admission confines the manager, as config/rbac/confinement.yaml does:
// an OLM bundle cannot install that file. The manager may not read admission policies, so it tests
// their effect, by a dry run of a change that they must refuse. Confinement runs in a manager, and
// exports the result to Prometheus.
type Confinement struct {
	// Client sends requests with the manager's own rights.
	Client client.Client
	Log    logr.Logger

	last atomic.Pointer[bool]
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each manager reports itself.
func (*Confinement) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (c *Confinement) Start(ctx context.Context) error {
	for {
		c.check(ctx)
		pause := unconfinedInterval
		if last := c.last.Load(); last != nil && *last {
			pause = confinedInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// check remembers whether the manager is confined, and logs changes. After an error, such as a
// timeout, the previous result stays.
func (c *Confinement) check(ctx context.Context) {
	confined, err := c.confined(ctx)
	if err != nil {
		c.Log.Info("The check of the manager's confinement failed", "reason", err.Error())
		return
	}
	switch last := c.last.Swap(&confined); {
	case last != nil && *last == confined:
	case confined:
		c.Log.Info("Admission confines this manager")
	default:
		c.Log.Info("Admission does not confine this manager: RBAC lets it grant any right and change any CustomResourceDefinition",
			"apply", "config/rbac/confinement.yaml, or config/overlays/olm after an installation with OLM")
	}
}

// confined tries to annotate the CustomResourceDefinition of policies.
func (c *Confinement) confined(ctx context.Context) (bool, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "conversionpolicies." + v1alpha1.GroupVersion.Group}}
	patch := mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"conversion-operator.io/confinement-check": ""}}})
	err := c.Client.Patch(ctx, crd, patch, client.DryRunAll, fieldOwner)
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "definitions.conversion-operator.io"):
		return true, nil
	}
	return false, err
}

var confinedMetric = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "confined"),
	"Whether admission refuses what the manager must not do: 1, or 0 if it does not. Absent until the first check.", nil, nil)

// Describe implements prometheus.Collector.
func (*Confinement) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- confinedMetric }

// Collect implements prometheus.Collector.
func (c *Confinement) Collect(metrics chan<- prometheus.Metric) {
	if last := c.last.Load(); last != nil {
		metrics <- prometheus.MustNewConstMetric(confinedMetric, prometheus.GaugeValue, asFloat(*last))
	}
}
