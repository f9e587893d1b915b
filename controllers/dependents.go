// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	dependentslive "github.com/conversion-operator/conversion-operator/internal/operator/dependents/live"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

const (
	// searchRate is the number of requests per second, and searchPage the number of objects whose
	// metadata is in memory: the manager has little of it.
	searchRate = 20
	searchPage = 100
	// searchTimeout bounds a search. What it has not read by then counts as not read.
	searchTimeout = time.Hour
	// maxDependents bounds how many are read, and namedDependents how many are named of each version.
	maxDependents   = 10000
	namedDependents = 3
)

// findDependents searches the cluster as the user that may do so, like the command dependents. The
// manager itself may not.
func (r *reader) findDependents(ctx context.Context, s step.FindDependents) observed.BackgroundCheck {
	failed := func(message string) observed.BackgroundCheck {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: message}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	config := r.as(s.User)
	helm, err := mayReadReleases(ctx, config)
	if err != nil {
		return failed(err.Error())
	}
	_, report, err := dependentslive.Find(ctx, config, dependentslive.Options{
		CRD: s.CRD, Versions: s.Versions, Helm: helm, QPS: searchRate, PageSize: searchPage, Most: maxDependents,
		Progress: func(string, int64) {},
	})
	if err != nil {
		return failed(err.Error())
	}
	return foundDependents(report)
}

// mayReadReleases reports whether the user may read Secrets, in which Helm stores the records of its
// releases. An administrator allows that separately.
func mayReadReleases(ctx context.Context, config *rest.Config) (bool, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, err
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether records of Helm may be read: %w", err)
	}
	return review.Status.Allowed, nil
}

// foundDependents counts what breaks when versions go. Entries in managedFields do not count: the
// operator removes them itself.
func foundDependents(report *dependents.Report) observed.BackgroundCheck {
	check := observed.BackgroundCheck{Dependents: map[string]observed.Dependents{}}
	for _, one := range report.Dependents {
		if one.Impact == dependents.Harmless || one.Dependency == dependents.FieldManager {
			continue
		}
		of := check.Dependents[one.Version]
		if of.Count++; len(of.Names) < namedDependents {
			of.Names = append(of.Names, fmt.Sprintf("%s (%s)", one.Object, one.Dependency))
		}
		check.Dependents[one.Version] = of
	}
	switch {
	case len(report.NotChecked) > 0:
		first := report.NotChecked[0]
		check.Message = fmt.Sprintf("%d resources or objects could not be read, for example %s: %s", len(report.NotChecked), first.What, first.Why)
	case report.More > 0:
		check.Message = fmt.Sprintf("there are more than %d dependents", maxDependents)
	default:
		return check
	}
	// It takes the same time again, so it is not repeated at once.
	check.Reason, check.Lost = v1alpha1.ReasonCheckFailed, true
	return check
}
