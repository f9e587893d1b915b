// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verify "github.com/conversion-operator/conversion-operator/internal/verify/live"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitions passes on the requested definitions, or all. Definitions are large, so
// it reads small pages, and the next one when there is room.
func (a *auditor) definitions(ctx context.Context, look func(*apiextensionsv1.CustomResourceDefinition)) error {
	if len(a.Names) == 0 {
		return a.all(ctx, look)
	}
	a.total(len(a.Names))
	for _, name := range a.Names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := verify.Send(ctx, a.client.Get().AbsPath(definitionsPath, name), crd)
		if apierrors.IsNotFound(err) && a.Next[name] != nil {
			continue // it is new
		}
		if apierrors.IsNotFound(err) {
			return notFound(name)
		}
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		look(crd)
	}
	return nil
}

func (a *auditor) all(ctx context.Context, look func(*apiextensionsv1.CustomResourceDefinition)) error {
	token, done := "", 0
	for {
		list := apiextensionsv1.CustomResourceDefinitionList{}
		request := a.client.Get().AbsPath(definitionsPath).Param("limit", fmt.Sprint(a.AtOnce))
		if token != "" {
			request = request.Param("continue", token)
		}
		err := verify.Send(ctx, request, &list)
		if renewed := verify.RenewedToken(err); renewed != "" && renewed != token {
			token = renewed
			continue
		}
		if err != nil {
			return fmt.Errorf("list CustomResourceDefinitions: %w", err)
		}
		done += len(list.Items)
		a.total(done + remaining(list.ListMeta))
		for i := range list.Items {
			crd := list.Items[i] // a copy, so that an unfinished one does not hold the page in memory
			look(&crd)
		}
		if token = list.Continue; token == "" {
			return nil
		}
	}
}

func (a *auditor) total(of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = of
}

func remaining(list metav1.ListMeta) int {
	if list.RemainingItemCount == nil {
		return 0
	}
	return int(*list.RemainingItemCount)
}
